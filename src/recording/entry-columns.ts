import { clearOnErasure } from '../core/forgetting.ts';
import { hashOf } from '../core/text-hash.ts';
import type { Change, RelatedItem, Who } from './change.ts';
import { type PathColumns, pathColumns } from './path-names.ts';

interface KindColumns {
  lookups: Buffer[];
  entities: string[];
  types: string[];
  /** JSON arrays. */
  relatedEntities: string[];
}

/** Of each actor; ids and the person it acted for are null where the change has none. */
interface ActorColumns {
  lookups: Buffer[];
  names: string[];
  ids: (string | null)[];
  behalfNames: (string | null)[];
  behalfIds: (string | null)[];
}

/** The distinct related items of each entry. */
interface RelatedColumns {
  /** 1-based index of the entry. */
  entries: number[];
  /** 1-based index of the item within its entry. */
  items: number[];
  documents: Buffer[];
  entities: string[];
  entityIds: string[];
}

/** What is derived from a batch of changes. `kinds` and `actors` of entries are 1-based indexes into the lists. */
interface EntryColumns {
  kind: KindColumns;
  actor: ActorColumns;
  kinds: number[];
  actors: number[];
  documents: Buffer[];
  relatedItem: RelatedColumns;
  path: PathColumns;
}

export function entryColumns(tenant: string, changes: readonly Change[]): EntryColumns {
  const kind: KindColumns = { lookups: [], entities: [], types: [], relatedEntities: [] };
  const actor: ActorColumns = { lookups: [], names: [], ids: [], behalfNames: [], behalfIds: [] };
  const kindPlaces = new Map<string, number>();
  const actorPlaces = new Map<string, number>();

  function placeOfKind({ entity, type, related }: Change): number {
    const relatedEntities = relatedEntitiesOf(related);
    // NUL separates names, which cannot contain it; cheaper than JSON.
    const key = `${type}\0${entity}\0${relatedEntities.join('\0')}`;
    return kindPlaces.getOrInsertComputed(key, () => {
      kind.entities.push(entity);
      kind.types.push(type);
      kind.relatedEntities.push(JSON.stringify(relatedEntities));
      return kind.lookups.push(hashOfKind(entity, type, relatedEntities));
    });
  }

  function placeOfActor(change: Change): number {
    const key = keyOfActor(change);
    return actorPlaces.getOrInsertComputed(key, () => {
      actor.names.push(change.actor);
      actor.ids.push(change.actorId ?? null);
      actor.behalfNames.push(change.onBehalfOf?.name ?? null);
      actor.behalfIds.push(change.onBehalfOf?.id ?? null);
      return actor.lookups.push(hashOf(key));
    });
  }

  return {
    kind,
    actor,
    kinds: changes.map(placeOfKind),
    actors: changes.map(placeOfActor),
    documents: changes.map((change) => documentHash(change.entityId)),
    relatedItem: relatedColumns(changes),
    path: pathColumns(tenant, changes),
  };
}

type NamedWho = Who & Pick<Change, 'actor'>;

/** Who made a change, as a row of the dictionary has it. */
export interface StoredActor {
  readonly name: string;
  readonly actorId: string | null;
  readonly onBehalfOfName: string | null;
  readonly onBehalfOfId: string | null;
}

function keyOfActor({ actor, actorId, onBehalfOf }: NamedWho): string {
  return keyOfStored({
    name: actor,
    actorId: actorId ?? null,
    onBehalfOfName: onBehalfOf?.name ?? null,
    onBehalfOfId: onBehalfOf?.id ?? null,
  });
}

/** The name alone, or all parts after a NUL, which no name has. */
function keyOfStored({ name, actorId, onBehalfOfName, onBehalfOfId }: StoredActor): string {
  if (actorId === null && onBehalfOfName === null && onBehalfOfId === null) return name;
  return `\0${JSON.stringify([name, actorId, onBehalfOfName, onBehalfOfId])}`;
}

/** The lookup hash of an actor. */
export function hashOfActor(who: NamedWho): Buffer {
  return hashOf(keyOfActor(who));
}

/** The lookup hash of a row of the dictionary. */
export function hashOfStoredActor(actor: StoredActor): Buffer {
  return hashOf(keyOfStored(actor));
}

/** The lookup hash of a row whose names were erased: no change leads to it, and alike people have different ones. */
export function hashOfErasedActor(actor: number): Buffer {
  return hashOf(`\0erased ${actor}`);
}

/** A UUID as PostgreSQL writes it. */
const canonicalUuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** The two columns of a correlation id: a UUID takes less room than its text. */
export function correlationColumns(id: string | null = null): readonly [uuid: string | null, text: string | null] {
  return id !== null && canonicalUuid.test(id) ? [id, null] : [null, id];
}

/** The distinct related entities of a kind. */
export function relatedEntitiesOf(related: readonly RelatedItem[]): string[] {
  const names = related.map((item) => item.entity);
  return names.length < 2 ? names : [...new Set(names)].sort();
}

function relatedColumns(changes: readonly Change[]): RelatedColumns {
  const columns: RelatedColumns = { entries: [], items: [], documents: [], entities: [], entityIds: [] };
  for (const [index, { related }] of changes.entries()) {
    if (related.length === 0) continue;
    for (const [itemIndex, { entity, entityId }] of distinctItems(related)) {
      columns.entries.push(index + 1);
      columns.items.push(itemIndex + 1);
      columns.documents.push(documentHash(entityId));
      columns.entities.push(entity);
      columns.entityIds.push(entityId);
    }
  }
  return columns;
}

/** Distinct items with their indexes. */
function distinctItems(related: readonly RelatedItem[]): Iterable<[number, RelatedItem]> {
  if (related.length < 2) return related.entries();
  // names have no NUL
  const firstPlaces = new Map<string, [number, RelatedItem]>();
  for (const [index, item] of related.entries()) {
    const key = `${item.entity}\0${item.entityId}`;
    if (!firstPlaces.has(key)) firstPlaces.set(key, [index, item]);
  }
  return firstPlaces.values();
}

const documentHashes = new Map<string, Buffer>();
const maxDocumentHashes = 20_000;
clearOnErasure(documentHashes);

/** The hash of a document id. Cached, since many changes are of few documents. */
export function documentHash(entityId: string): Buffer {
  const cached = documentHashes.get(entityId);
  if (cached !== undefined) return cached;
  if (documentHashes.size >= maxDocumentHashes) documentHashes.clear();
  const computed = hashOf(entityId);
  documentHashes.set(entityId, computed);
  return computed;
}

/** The lookup hash of a kind. */
export function hashOfKind(entity: string, type: string, relatedEntities: readonly string[]): Buffer {
  return hashOf(JSON.stringify([entity, type, relatedEntities]));
}
