import { createHash } from 'node:crypto';
import type { Change } from './change.ts';

export interface KindColumns {
  lookup: string;
  entity: string;
  type: Change['type'];
  relatedEntities: readonly string[];
}

export interface ActorColumns {
  lookup: string;
  name: string;
}

/** `kind` and `actor` are 1-based places in the lists beside. */
export interface EntryRow {
  at: number;
  kind: number;
  actor: number;
  document: string;
  identity: string;
  entityId: string;
  name: string | null;
  schemaVersion: string | null;
  related: string | null;
  paths: string;
}

/** A batch of changes as the database keeps them: each kind and each actor once. */
export interface EntryColumns {
  kinds: KindColumns[];
  actors: ActorColumns[];
  entries: EntryRow[];
}

export function entryColumns(changes: readonly Change[]): EntryColumns {
  const kinds = new Places<KindColumns>();
  const actors = new Places<ActorColumns>();
  const entries = changes.map((change): EntryRow => {
    const relatedEntities = [...new Set(change.related.map((item) => item.entity))].sort();
    const kindKey = JSON.stringify([change.entity, change.type, relatedEntities]);
    return {
      at: change.at,
      kind: kinds.place(kindKey, () => ({
        lookup: uuidOf(kindKey),
        entity: change.entity,
        type: change.type,
        relatedEntities,
      })),
      actor: actors.place(change.actor, () => ({ lookup: uuidOf(change.actor), name: change.actor })),
      document: uuidOf(change.entityId),
      identity: Buffer.from(change.identity).toString('hex'),
      entityId: change.entityId,
      name: change.name ?? null,
      schemaVersion: change.schemaVersion ?? null,
      related: change.related.length === 0 ? null : relatedText(change),
      paths: change.paths,
    };
  });
  return { kinds: kinds.values, actors: actors.values, entries };
}

/** The first 16 bytes of the SHA-256 of a text's UTF-8, in hexadecimal: what stands for the text in an index. */
export function uuidOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

function relatedText(change: Change): string {
  return JSON.stringify(change.related.map(({ entity, entityId }) => ({ entity, entityId })));
}

class Places<Value> {
  readonly values: Value[] = [];
  readonly #places = new Map<string, number>();

  place(key: string, make: () => Value): number {
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const place = this.values.push(make());
    this.#places.set(key, place);
    return place;
  }
}
