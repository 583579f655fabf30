import { hash } from 'node:crypto';
import type { Change } from './change.ts';
import { type PathColumns, pathColumns } from './path-columns.ts';

/** Each kind that a batch has, once. */
export interface KindColumns {
  lookups: Buffer[];
  entities: string[];
  types: string[];
  /** JSON arrays. */
  relatedEntities: string[];
}

export interface ActorColumns {
  lookups: Buffer[];
  names: string[];
}

/** A batch of changes in columns. `kinds` and `actors` of an entry are 1-based places in the lists beside. */
export interface EntryColumns {
  kind: KindColumns;
  actor: ActorColumns;
  ats: number[];
  kinds: number[];
  actors: number[];
  documents: Buffer[];
  identities: Uint8Array[];
  entityIds: string[];
  names: (string | null)[];
  schemaVersions: (string | null)[];
  related: (string | null)[];
  paths: string[];
  /** Empty where none of the entries has any: PostgreSQL then takes null for all. */
  marks: (string | null)[];
  contexts: (string | null)[];
  path: PathColumns;
}

export function entryColumns(tenant: string, changes: readonly Change[]): EntryColumns {
  const kind: KindColumns = { lookups: [], entities: [], types: [], relatedEntities: [] };
  const actor: ActorColumns = { lookups: [], names: [] };
  const kindPlaces = new Map<string, number>();
  const actorPlaces = new Map<string, number>();

  function placeOfKind({ entity, type, related }: Change): number {
    const relatedEntities = related.length === 0 ? [] : [...new Set(related.map((item) => item.entity))].sort();
    // Most changes have no related items. To look up their kind costs no JSON.
    const key = related.length === 0 ? `${type} ${entity}` : JSON.stringify([entity, type, relatedEntities]);
    const known = kindPlaces.get(key);
    if (known !== undefined) return known;
    kind.lookups.push(hashOf(JSON.stringify([entity, type, relatedEntities])));
    kind.entities.push(entity);
    kind.types.push(type);
    kind.relatedEntities.push(JSON.stringify(relatedEntities));
    kindPlaces.set(key, kind.lookups.length);
    return kind.lookups.length;
  }

  function placeOfActor(name: string): number {
    const known = actorPlaces.get(name);
    if (known !== undefined) return known;
    actor.lookups.push(hashOf(name));
    actor.names.push(name);
    actorPlaces.set(name, actor.lookups.length);
    return actor.lookups.length;
  }

  return {
    kind,
    actor,
    ats: changes.map((change) => change.at),
    kinds: changes.map(placeOfKind),
    actors: changes.map((change) => placeOfActor(change.actor)),
    documents: changes.map((change) => hashOf(change.entityId)),
    identities: changes.map((change) => change.identity),
    entityIds: changes.map((change) => change.entityId),
    names: changes.map((change) => change.name ?? null),
    schemaVersions: changes.map((change) => change.schemaVersion ?? null),
    related: changes.map((change) => (change.related.length === 0 ? null : relatedText(change))),
    paths: changes.map((change) => change.paths),
    marks: rareColumn(changes, (change) => change.marks),
    contexts: rareColumn(changes, (change) => change.context),
    path: pathColumns(tenant, changes),
  };
}

function rareColumn(changes: readonly Change[], memberOf: (change: Change) => string | undefined): (string | null)[] {
  return changes.some((change) => memberOf(change) !== undefined)
    ? changes.map((change) => memberOf(change) ?? null)
    : [];
}

/** The first 16 bytes of the SHA-256 of a text's UTF-8. They stand for the text in an index. */
export function hashOf(text: string): Buffer {
  return hash('sha256', text, 'buffer').subarray(0, 16);
}

/** The same in hexadecimal. */
export function uuidOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 32);
}

function relatedText(change: Change): string {
  return JSON.stringify(change.related.map(({ entity, entityId }) => ({ entity, entityId })));
}
