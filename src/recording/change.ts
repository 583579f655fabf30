import { randomBytes } from 'node:crypto';
import { parseJson } from './json.ts';
import type { JsonNode } from './json-tape.ts';
import { pathsOf } from './paths.ts';

export type ChangeType = 'create' | 'update' | 'delete';

/** A document that the changed one is linked to. */
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
}

/**
 * What became of a change: recorded now; there already with the same content; older than its tenant keeps entries;
 * or there already, under the same identity and time, with other content.
 */
export type Outcome = 'recorded' | 'duplicate' | 'expired' | 'conflict';

/** Records a batch in one transaction; outcomes in the order of the batch. */
export interface RecordBatch {
  (batch: readonly Change[]): Promise<readonly Outcome[]>;
  /** Does what can be done before the batch's turn has come, and answers what records it then. */
  prepare?(batch: readonly Change[]): () => Promise<readonly Outcome[]>;
}

/** What a room that owns documents knows of a change to one of them. */
export interface DocumentChange {
  type: ChangeType;
  entity: string;
  entityId: string;
  at: number;
  actor: string;
  name?: string | undefined;
  schemaVersion?: string | undefined;
  related?: readonly RelatedItem[] | undefined;
  /** JSON text, or parsed already. What is a secret in it must have been masked. */
  before?: string | JsonNode | undefined;
  after?: string | JsonNode | undefined;
}

/**
 * The change to record for a change of a document that lives in this service, with an identity drawn at random; or
 * that it changes nothing. Throws `JsonSyntaxError` and `PathsTooLargeError`.
 */
export function changeOfDocuments(document: DocumentChange): Change | 'unchanged' {
  const paths = pathsOfChange(document.type, nodeOf(document.before), nodeOf(document.after));
  if (paths === undefined) return 'unchanged';
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
    paths,
  };
}

export const identityLength = 16;

/**
 * The `paths` of a change, or undefined where it is an update that changes nothing. A create has `after` only and a
 * delete `before` only (contract 6), so what else came with them is not looked at. An update of which one side or both
 * are unknown is a change all the same.
 */
export function pathsOfChange(
  type: ChangeType,
  before: JsonNode | undefined,
  after: JsonNode | undefined,
): string | undefined {
  const paths = pathsOf(type === 'create' ? undefined : before, type === 'delete' ? undefined : after);
  const isUpdateOfKnown = type === 'update' && before !== undefined && after !== undefined;
  return isUpdateOfKnown && paths === '{}' ? undefined : paths;
}

function nodeOf(document: string | JsonNode | undefined): JsonNode | undefined {
  return typeof document === 'string' ? parseJson(document) : document;
}
