import { sql } from 'kysely';
import { int4Array } from '../../postgres/binary-arrays.ts';
import type { Connection } from '../../postgres/database.ts';
import type { ChangeType, RelatedItem } from '../../recording/change.ts';
import { correlationColumns, entryColumns } from '../../recording/entry-columns.ts';
import { isErasedAsSaid } from '../bundle/proven-entry.ts';
import { type EntryPlace, readCommitted, type StoredEntry } from '../log/entry-store.ts';
import type { UnknownEntry } from './unknown-entries.ts';

// Columns that no commitment has, because they follow from those that it has. Who changes one of them hides an entry
// from queries, or makes it look erased, and leaves its proof as it is.

/** The entries that are read at once, and the bytes of their texts that end them before. */
const maxEntries = 1_000;
const maxBytes = 8 * 1024 * 1024;

interface DerivedColumns extends EntryPlace {
  /** The hash of the id, in hexadecimal. */
  readonly document: string;
  readonly numbers: readonly number[];
  /** The correlation id: a UUID in the first place, any other text in the second; the other one is null. */
  readonly correlation: readonly [uuid: string | null, text: string | null];
  /** The rows of related items, each as JSON text: place, hash of the id, entity, id. */
  readonly items: readonly string[];
  /** The types of its related items as its kind has them, by which queries choose what to read: a JSON array. */
  readonly relatedEntities: string;
}

/**
 * Entries with a column that does not follow from the others: what finds them by document, path or related item, and
 * what was erased.
 */
export async function findUnderived(db: Connection, tenant: string, limit: number): Promise<UnknownEntry[]> {
  const found: UnknownEntry[] = [];
  for (let after: EntryPlace = { at: -(2 ** 53), sequence: 0 }; found.length < limit; ) {
    const derived = await readDerived(db, tenant, after);
    const entries = await readCommitted(db, tenant, derived, maxBytes);
    const last = derived[entries.length - 1];
    if (last === undefined) break;
    after = last;
    // One that has just been dropped follows from nothing.
    const read = entries.flatMap((entry, place) => (entry === null ? [] : [{ entry, columns: derived[place] }]));
    const made = columnsOfAny(
      tenant,
      read.map(({ entry }) => entry),
    );
    const nameless = await findNameless(db, tenant, new Set(read.flatMap(({ columns }) => columns?.numbers ?? [])));
    found.push(
      ...read
        .filter(
          ({ entry, columns }, place) =>
            !isSame(columns, made[place]) ||
            !isErasedAsSaid(entry) ||
            columns?.numbers.some((number) => nameless.has(number)),
        )
        .map(({ entry }) => entry),
    );
  }
  return found.slice(0, limit);
}

/** Numbers of paths of which the dictionary has no name: no query by a name finds their entries. */
async function findNameless(
  db: Connection,
  tenant: string,
  numbers: ReadonlySet<number>,
): Promise<ReadonlySet<number>> {
  const { rows } = await sql<{ number: number }>`
    select distinct p.number from change_path p
      where p.tenant = ${tenant} and p.number = any (${int4Array([...numbers])}::integer[])`.execute(db);
  const named = new Set(rows.map(({ number }) => number));
  return new Set([...numbers].filter((number) => !named.has(number)));
}

type MadeColumns = Omit<DerivedColumns, keyof EntryPlace>;

/** What recording would write for these entries; undefined for one whose texts recording never writes. */
function columnsOfAny(tenant: string, entries: readonly StoredEntry[]): (MadeColumns | undefined)[] {
  try {
    return columnsOf(tenant, entries);
  } catch {
    return entries.length === 1 ? [undefined] : entries.flatMap((entry) => columnsOfAny(tenant, [entry]));
  }
}

/** What recording would write for these entries. Throws where a text is none of its own. */
function columnsOf(tenant: string, entries: readonly StoredEntry[]): MadeColumns[] {
  const { documents, kind, kinds, path, relatedItem } = entryColumns(
    tenant,
    entries.map((entry) => ({
      ...{ identity: Buffer.alloc(0), at: entry.at, type: entry.type as ChangeType, actor: entry.actor },
      ...{ entity: entry.entity, entityId: entry.entityId, related: itemsOf(entry.related), paths: entry.paths },
    })),
  );
  const items = entries.map((): string[] => []);
  for (const [index, entry] of relatedItem.entries.entries()) {
    const [document = Buffer.alloc(0), id] = [relatedItem.documents[index], relatedItem.entityIds[index]];
    const item = [relatedItem.items[index], document.toString('hex'), relatedItem.entities[index], id];
    items[entry - 1]?.push(JSON.stringify(item));
  }
  return entries.map((entry, index) => ({
    document: documents[index]?.toString('hex') ?? '',
    numbers: path.ofEntries[index] ?? [],
    correlation: correlationColumns(entry.correlationId),
    items: items[index] ?? [],
    relatedEntities: kind.relatedEntities[(kinds[index] ?? 0) - 1] ?? '',
  }));
}

/** Items in another form than recording writes: the entry is found as changed. */
function itemsOf(related: string | null): readonly RelatedItem[] {
  try {
    const items: unknown = JSON.parse(related ?? '[]');
    return Array.isArray(items) ? items.filter((item) => typeof item?.entityId === 'string') : [];
  } catch {
    return [];
  }
}

function isSame(stored: DerivedColumns | undefined, made: MadeColumns | undefined): boolean {
  if (stored === undefined || made === undefined || stored.document !== made.document) return false;
  if (stored.relatedEntities !== made.relatedEntities) return false;
  if (stored.correlation.some((column, place) => column !== made.correlation[place])) return false;
  return isSameSet(stored.numbers, made.numbers) && isSameSet(stored.items, made.items);
}

function isSameSet<One>(some: readonly One[], others: readonly One[]): boolean {
  const known = new Set(some);
  return some.length === others.length && others.every((one) => known.has(one));
}

async function readDerived(
  db: Connection,
  tenant: string,
  { at, sequence }: EntryPlace,
): Promise<readonly DerivedColumns[]> {
  const { rows } = await sql<
    Omit<DerivedColumns, 'items' | 'relatedEntities'> & { items: unknown[]; relatedEntities: string[] }
  >`
    select e.at, e.sequence, replace(e.document::text, '-', '') as document, k.related_entities as "relatedEntities",
           coalesce(e.path_numbers, '{}') as numbers,
           json_build_array(e.correlation, e.correlation_text) as correlation,
           (select coalesce(json_agg(json_build_array(r.item, replace(r.document::text, '-', ''), r.entity, r.entity_id)), '[]')
              from change_related r where r.tenant = ${tenant} and r.at = e.at and r.sequence = e.sequence) as items
      from change_entry e
      left join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
      where e.tenant = ${tenant} and (e.at, e.sequence) > (${at}::bigint, ${sequence}::bigint)
      order by e.at, e.sequence limit ${maxEntries}`.execute(db);
  return rows.map((row) => ({
    ...row,
    items: row.items.map((item) => JSON.stringify(item)),
    relatedEntities: JSON.stringify(row.relatedEntities),
  }));
}
