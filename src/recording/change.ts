import { randomBytes } from 'node:crypto';
import { parseJson } from '../core/json/parse.ts';
import type { JsonNode } from '../core/json/tape.ts';
import type { Credentials } from '../http/credentials.ts';
import { type Difference, differenceOf } from './paths.ts';

export type ChangeType = 'create' | 'update' | 'delete';

/** A document that is linked to the changed one. */
export interface RelatedItem {
  entity: string;
  entityId: string;
}

/** A change ready to be recorded. */
export interface Change {
  /** 16 bytes that, together with `at`, identify the change within its tenant. */
  identity: Uint8Array;
  /** When it happened, in whole milliseconds since 1970. */
  at: number;
  type: ChangeType;
  entity: string;
  entityId: string;
  name?: string;
  schemaVersion?: string;
  actor: string;
  related: readonly RelatedItem[];
  /** JSON text of the map from path to `{before, after}`. */
  paths: string;
  /** What `paths` does not tell about the documents, as JSON text (marks.ts). */
  marks?: string;
  /** JSON text of an object about the circumstances (context.ts): an address, a request id, a reason. */
  context?: string;
}

/** How a change came to this service. */
export type Way = 'service' | 'import' | 'recorder' | 'capture' | 'relay';

/** How the changes of a batch came, and by which client, capture or person. Nobody can give it from outside. */
export interface RecordedBy {
  way: Way;
  by?: string;
  /** Who wrote the document, where they signed in with a company's account. */
  person?: Credentials['person'];
}

/**
 * The outcome of a change. `recorded`: it is an entry now. `duplicate`: it was an entry already. `expired`: it is older than its
 * tenant keeps entries. `conflict`: another entry has the same identity and time with other content.
 */
export type Outcome = 'recorded' | 'duplicate' | 'expired' | 'conflict';

/** Records a batch in one transaction. The outcomes come in the order of the batch. */
export interface RecordBatch {
  (batch: readonly Change[]): Promise<readonly Outcome[]>;
  /** Prepares the batch before its turn, and returns the function that records it. */
  prepare?(batch: readonly Change[]): () => Promise<readonly Outcome[]>;
}

/** A change of a document that lives in this service, as the module that owns the document knows it. */
export interface DocumentChange {
  type: ChangeType;
  entity: string;
  entityId: string;
  at: number;
  actor: string;
  name?: string | undefined;
  schemaVersion?: string | undefined;
  related?: readonly RelatedItem[] | undefined;
  /** JSON text, or parsed already. The caller must have masked secrets in it. */
  before?: string | JsonNode | undefined;
  after?: string | JsonNode | undefined;
}

/**
 * Makes the change to record for a document that lives in this service, with a random identity, or returns `unchanged`. Throws
 * `JsonSyntaxError`, and `PathsTooLargeError` where its paths take more than `maxPathsBytes`.
 */
export function changeOfDocuments(document: DocumentChange, maxPathsBytes?: number): Change | 'unchanged' {
  const { type, before, after } = document;
  const difference = differenceOfChange(type, nodeOf(before), nodeOf(after), maxPathsBytes);
  if (difference === undefined) return 'unchanged';
  return {
    identity: randomBytes(identityLength),
    at: document.at,
    type: document.type,
    entity: document.entity,
    entityId: document.entityId,
    ...(document.name === undefined ? {} : { name: document.name }),
    ...(document.schemaVersion === undefined ? {} : { schemaVersion: document.schemaVersion }),
    actor: document.actor,
    related: document.related ?? [],
    ...contentOf(difference),
  };
}

export const identityLength = 16;

/**
 * The paths and marks of a change, or undefined for an update that changes nothing. A create has `after` only and a delete `before`
 * only (contract 6), so their other side is ignored. An update with an unknown side is always a change.
 */
export function differenceOfChange(
  type: ChangeType,
  before: JsonNode | undefined,
  after: JsonNode | undefined,
  maxBytes?: number,
): Difference | undefined {
  const isUpdate = type === 'update';
  const isWhole = isUpdate && (before === undefined || after === undefined);
  const difference = differenceOf(type === 'create' ? undefined : before, type === 'delete' ? undefined : after, {
    isWhole,
    maxBytes,
  });
  return isUpdate && !isWhole && difference.paths === '{}' ? undefined : difference;
}

/** The members of a change for its difference. */
export function contentOf({ paths, marks }: Difference): Pick<Change, 'paths' | 'marks'> {
  return marks === undefined ? { paths } : { paths, marks };
}

function nodeOf(document: string | JsonNode | undefined): JsonNode | undefined {
  return typeof document === 'string' ? parseJson(document) : document;
}
