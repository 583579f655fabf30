import { type RawBuilder, sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Place } from '../entries/entry-store.ts';

/** The entries of a tenant in a search for documents. */
export interface DocumentSource {
  readonly transaction: DatabaseTransaction;
  readonly tenant: string;
  readonly since: number;
  /** Kinds with the place of their entity type in a list. */
  readonly kinds: readonly number[];
  readonly entityOfKind: readonly number[];
  readonly isEveryKind: boolean;
}

export interface DocumentEntry extends Place {
  readonly document: string;
  /** The place of the entity type in the list. */
  readonly entity: number;
  readonly entityId: string;
  readonly name: string | null;
}

const columns = sql`e.at, e.sequence, e.document, k.entity, e.entity_id as "entityId", e.name`;

const kindsOf = ({ kinds, entityOfKind }: DocumentSource) =>
  sql`unnest(${kinds}::bigint[], ${entityOfKind}::integer[]) as k (kind, entity)`;

/** The entries before a place, newest first. */
export async function readBefore(source: DocumentSource, before: Place, max: number): Promise<DocumentEntry[]> {
  const { tenant, since, kinds, isEveryKind } = source;
  const isBefore = sql`c.at >= ${since} and (c.at, c.sequence) < (${before.at}::bigint, ${before.sequence}::bigint)`;
  const newest = sql`order by c.at desc, c.sequence desc limit ${max}`;
  const places = isEveryKind
    ? sql`select c.at, c.sequence from change_entry c where c.tenant = ${tenant} and ${isBefore} ${newest}`
    : sql`select c.at, c.sequence
            from unnest(${kinds}::bigint[]) as key (kind)
            cross join lateral (
              -- in the order that only the index of kinds has
              select c.at, c.sequence from change_entry c
                where c.tenant = ${tenant} and c.kind between key.kind and key.kind and ${isBefore}
                order by c.kind desc, c.at desc, c.sequence desc limit ${max}
            ) as c
            ${newest}`;
  return await readPlaces(source, places);
}

async function readPlaces(source: DocumentSource, places: RawBuilder<unknown>): Promise<DocumentEntry[]> {
  const { rows } = await sql<DocumentEntry>`
    select ${columns}
      from (${places}) as place
      join change_entry e on e.tenant = ${source.tenant} and e.at = place.at and e.sequence = place.sequence
      join ${kindsOf(source)} on k.kind = e.kind
      order by e.at desc, e.sequence desc`.execute(source.transaction);
  return rows;
}

/** The documents without an entry from a moment on. */
export async function withoutEntriesFrom(
  source: DocumentSource,
  documents: readonly DocumentEntry[],
  moment: number,
): Promise<DocumentEntry[]> {
  const { rows } = await sql<{ place: number }>`
    select w.place
      from ${documentsTable(source, documents)}
      where not exists (
        select from change_entry e
          where e.tenant = ${source.tenant} and e.document = w.document and e.at >= ${moment} and e.kind = any (k.kinds))
      order by w.place`.execute(source.transaction);
  return rows.flatMap(({ place }) => documents[place - 1] ?? []);
}

/** The hash of the id of a document, and its entity type as the source has it. */
export type DocumentOfEntity = Pick<DocumentEntry, 'document' | 'entity'>;

/** Documents `w` with the kinds `k` of their entity types. */
function documentsTable({ kinds, entityOfKind }: DocumentSource, documents: readonly DocumentOfEntity[]) {
  return sql`unnest(${documents.map(({ document }) => document)}::uuid[], ${documents.map(({ entity }) => entity)}::integer[])
      with ordinality as w (document, entity, place)
    join (
      select listed.entity, array_agg(listed.kind) as kinds
        from unnest(${kinds}::bigint[], ${entityOfKind}::integer[]) as listed (kind, entity) group by listed.entity
    ) as k on k.entity = w.entity`;
}

/** The newest entries of documents, newest first. Those without an entry are left out. */
export async function readNewest(
  source: DocumentSource,
  documents: readonly DocumentOfEntity[],
): Promise<DocumentEntry[]> {
  if (documents.length === 0) return [];
  const places = sql`
    select newest.at, newest.sequence
      from ${documentsTable(source, documents)}
      cross join lateral (
        select e.at, e.sequence from change_entry e
          where e.tenant = ${source.tenant} and e.document = w.document and e.at >= ${source.since} and e.kind = any (k.kinds)
          order by e.at desc, e.sequence desc limit 1
      ) as newest`;
  return await readPlaces(source, places);
}

/** Nameless entries that are skipped in search of the newest name, as for a document as it was. */
const maxNameless = 1_000;

export async function readLastNames(
  source: DocumentSource,
  documents: readonly DocumentOfEntity[],
): Promise<(string | null)[]> {
  if (documents.length === 0) return [];
  const { rows } = await sql<{ place: number; name: string | null }>`
    select w.place, (
        select newest.name
          from (
            select e.at, e.sequence, e.name from change_entry e
              where e.tenant = ${source.tenant} and e.document = w.document and e.at >= ${source.since} and e.kind = any (k.kinds)
              order by e.at desc, e.sequence desc limit ${sql.lit(maxNameless)}
          ) as newest
          where newest.name is not null
          order by newest.at desc, newest.sequence desc limit 1
      ) as name
      from ${documentsTable(source, documents)}`.execute(source.transaction);
  const names = new Map(rows.map(({ place, name }) => [place - 1, name]));
  return documents.map((_document, index) => names.get(index) ?? null);
}

export async function withNames(source: DocumentSource, documents: readonly DocumentEntry[]): Promise<DocumentEntry[]> {
  const nameless = documents.filter(({ name }) => name === null);
  const names = await readLastNames(source, nameless);
  const nameOf = new Map(nameless.map((document, index) => [document, names[index] ?? null]));
  return documents.map((document) => ({ ...document, name: document.name ?? nameOf.get(document) ?? null }));
}

/** The key of a row of the directory: the first 32 bits of two hashes, which documents may share. */
export interface DirectoryKey {
  readonly document: number;
  readonly entity: number;
}

/** The documents whose hashes begin with a key, with the key. Their entity types may differ. */
export async function documentsOf<Key extends Pick<DirectoryKey, 'document'>>(
  { transaction, tenant }: Pick<DocumentSource, 'transaction' | 'tenant'>,
  keys: readonly Key[],
): Promise<{ key: Key; document: string }[]> {
  const found: { key: Key; document: string }[] = [];
  let open = keys.map((key) => {
    const head = (key.document >>> 0).toString(16).padStart(8, '0');
    return { key, after: head.padEnd(32, '0'), last: head.padEnd(32, 'f') };
  });
  // Mostly one step finds the document of each key, and a second one that there is no other.
  while (open.length > 0) {
    const { rows } = await sql<{ place: number; document: string }>`
      select w.place, next.document
        from unnest(${open.map(({ after }) => after)}::uuid[], ${open.map(({ last }) => last)}::uuid[])
          with ordinality as w (after, last, place)
        cross join lateral (
          select e.document from change_entry e
            where e.tenant = ${tenant} and e.document > w.after and e.document <= w.last
            order by e.document, e.at, e.sequence limit 1
        ) as next`.execute(transaction);
    const next = rows.flatMap(({ place, document }) => {
      const from = open[place - 1];
      return from === undefined ? [] : [{ ...from, after: document }];
    });
    found.push(...next.map(({ key, after }) => ({ key, document: after })));
    open = next;
  }
  return found;
}

const documentsAtOnce = 1_000;

/**
 * The newest entries of all documents whose newest entry is before a place, newest first. Reads the index of documents
 * once. A transaction can run it once.
 */
export async function* latestBefore(source: DocumentSource, before: Place): AsyncGenerator<DocumentEntry[]> {
  const { transaction, tenant, since } = source;
  await sql`declare documents no scroll cursor for
    select max(array[e.at, e.sequence]) as place
      from change_entry e join ${kindsOf(source)} on k.kind = e.kind
      where e.tenant = ${tenant} and e.at >= ${since}
      group by e.document, k.entity
      having max(array[e.at, e.sequence]) < array[${before.at}::bigint, ${before.sequence}::bigint]
      order by 1 desc`.execute(transaction);
  for (;;) {
    const { rows } = await sql<{ place: [number, number] }>`
      fetch ${sql.lit(documentsAtOnce)} from documents`.execute(transaction);
    if (rows.length > 0) {
      const ats = rows.map(({ place }) => place[0]);
      const sequences = rows.map(({ place }) => place[1]);
      yield await readPlaces(
        source,
        sql`select * from unnest(${ats}::bigint[], ${sequences}::bigint[]) as p (at, sequence)`,
      );
    }
    if (rows.length < documentsAtOnce) return;
  }
}
