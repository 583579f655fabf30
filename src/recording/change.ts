import { randomBytes } from 'node:crypto';
import { parseJson } from '../core/json/parse.ts';
import type { JsonNode } from '../core/json/tape.ts';
import type { Credentials } from '../http/credentials.ts';
import { type Difference, differenceOf } from './paths.ts';

export type ChangeType = 'create' | 'update' | 'delete';

/** A document related to the changed one. */
export interface RelatedItem {
  entity: string;
  entityId: string;
}

/** A name, an id or both. */
export interface Person {
  name?: string;
  id?: string;
}

/** Who made a change. All parts are of one source: a name of one and an id of another may be two people. */
export interface Who {
  actor?: string;
  /** Identifies the actor: names change, and several people have the same name. */
  actorId?: string;
  /** For whom the actor made the change. */
  onBehalfOf?: Person;
}

/** The name of an actor without one. */
export const unknownActor = 'unknown';

/** A change ready to be recorded. */
export interface Change extends Who {
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
  /** What the change belongs to: a request or a transaction. */
  correlationId?: string;
  /** The members that Annals derived. They are no content: a repeat with other values is a duplicate. */
  derived?: { readonly correlationId?: true; readonly actor?: true };
  related: readonly RelatedItem[];
  /** JSON text of the map from path to `{before, after}`. */
  paths: string;
  /** Marks as JSON text (`Marks`). */
  marks?: string;
  /** JSON text of an object (`faultOfContext`): an address, a request id, a reason. */
  context?: string;
}

/** The change, with a derived correlation id unless it has one of its own. */
export function withDerivedCorrelation<Correlated extends Pick<Change, 'correlationId' | 'derived'>>(
  change: Correlated,
  correlationId: string | undefined,
): Correlated {
  if (correlationId === undefined || change.correlationId !== undefined) return change;
  return { ...change, correlationId, derived: { ...change.derived, correlationId: true } };
}

/** How a change reached this service. */
export type Way = 'service' | 'import' | 'recorder' | 'capture' | 'relay';

/** How the changes of a batch arrived, and from which client, capture or person. Never taken from a request. */
export interface RecordedBy {
  way: Way;
  by?: string;
  /** The author, if signed in with a company's account. */
  person?: Credentials['person'];
}

/**
 * `recorded`: a new entry. `duplicate`: the entry already existed. `expired`: older than the tenant's horizon.
 * `conflict`: an entry with the same identity and time has other content.
 */
export type Outcome = 'recorded' | 'duplicate' | 'expired' | 'conflict';

/** Records changes in one transaction. Outcomes are in the order of the changes. */
export interface RecordChanges {
  (batch: readonly Change[]): Promise<readonly Outcome[]>;
  /** Prepares the changes ahead of time, and returns the function that records them. */
  prepare?(batch: readonly Change[]): () => Promise<readonly Outcome[]>;
}

/** A change of a document that this service stores. */
export interface DocumentChange {
  type: ChangeType;
  entity: string;
  entityId: string;
  at: number;
  actor: string;
  actorId?: string | undefined;
  correlationId?: string | undefined;
  name?: string | undefined;
  schemaVersion?: string | undefined;
  related?: readonly RelatedItem[] | undefined;
  /** JSON text, or parsed. The caller must have masked its secrets. */
  before?: string | JsonNode | undefined;
  after?: string | JsonNode | undefined;
}

/**
 * The change to record for a document that this service stores, with a random identity, or `unchanged`. Throws
 * `JsonSyntaxError`, and `PathsTooLargeError` if `paths` exceeds `maxPathsBytes`.
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
    ...(document.actorId === undefined ? {} : { actorId: document.actorId }),
    ...(document.correlationId === undefined ? {} : { correlationId: document.correlationId }),
    related: document.related ?? [],
    ...contentOf(difference),
  };
}

export const identityLength = 16;

/**
 * The paths and marks of a change, or undefined for an update without changes. Creates use only `after` and deletes
 * only `before` (contract 6). An update with an unknown side is always a change.
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

/** The paths and marks as members of a change. */
export function contentOf({ paths, marks }: Difference): Pick<Change, 'paths' | 'marks'> {
  return marks === undefined ? { paths } : { paths, marks };
}

function nodeOf(document: string | JsonNode | undefined): JsonNode | undefined {
  return typeof document === 'string' ? parseJson(document) : document;
}

/** The entity types of this service's documents. Instances use the id of their custom type. */
export const ownEntities = [
  'agent',
  'annals-budget',
  'annals-hold',
  'annals-view',
  'changelog-subscription',
  'configuration',
  'custom-entity',
] as const;

export type OwnEntity = (typeof ownEntities)[number];

/** Whether only this service records documents of the entity. The same holds for a tenant's custom types. */
export function isOwnEntity(entity: string): boolean {
  return entity.startsWith('annals-') || ownEntities.some((own) => own === entity);
}
