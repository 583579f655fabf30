import { type RawBuilder, sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Place } from '../page/store.ts';

/** The entries of a tenant that count in a search for documents. */
export interface DocumentSource {
  readonly transaction: DatabaseTransaction;
  readonly tenant: string;
  /** The first moment that the tenant still has. */
  readonly since: number;
  /** Kinds with the place of their entity type in a list. Entries of other kinds do not count. */
  readonly kinds: readonly number[];
  readonly entityOfKind: readonly number[];
  /** Whether all kinds of the tenant are among them. */
  readonly isEveryKind: boolean;
}

/** An entry of a document. */
export interface DocumentEntry extends Place {
  /** The hash of its id. */
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
  const isBefore = sql`one.at >= ${since} and (one.at, one.sequence) < (${before.at}::bigint, ${before.sequence}::bigint)`;
  const newest = sql`order by one.at desc, one.sequence desc limit ${max}`;
  const places = isEveryKind
    ? sql`select one.at, one.sequence from change_entry one where one.tenant = ${tenant} and ${isBefore} ${newest}`
    : sql`select one.at, one.sequence
            from unnest(${kinds}::bigint[]) as key (kind)
            cross join lateral (
              select one.at, one.sequence from change_entry one
                where one.tenant = ${tenant} and one.kind = key.kind and ${isBefore} ${newest}
            ) as one
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

/** Those of the documents that have no entry from a moment on. */
export async function withoutEntriesFrom(
  source: DocumentSource,
  documents: readonly DocumentEntry[],
  moment: number,
): Promise<DocumentEntry[]> {
  const { rows } = await sql<{ place: number }>`
    select w.place
      from unnest(${documents.map(({ document }) => document)}::uuid[], ${documents.map(({ entity }) => entity)}::integer[])
        with ordinality as w (document, entity, place)
      where not exists (
        select from change_entry e
          where e.tenant = ${source.tenant} and e.document = w.document and e.at >= ${moment}
            and e.kind in (select k.kind from ${kindsOf(source)} where k.entity = w.entity))
      order by w.place`.execute(source.transaction);
  return rows.flatMap(({ place }) => documents[place - 1] ?? []);
}

/** Entries without a name that are skipped in search of the newest name, as for a document as it was. */
const maxNameless = 1_000;

/** The documents with their last names. */
export async function withNames(source: DocumentSource, documents: readonly DocumentEntry[]): Promise<DocumentEntry[]> {
  const nameless = documents.filter(({ name }) => name === null);
  if (nameless.length === 0) return [...documents];
  const { rows } = await sql<{ name: string | null }>`
    select (
        select newest.name
          from (
            select e.at, e.sequence, e.name from change_entry e
              where e.tenant = ${source.tenant} and e.document = w.document and e.at >= ${source.since}
                and e.kind in (select k.kind from ${kindsOf(source)} where k.entity = w.entity)
              order by e.at desc, e.sequence desc limit ${sql.lit(maxNameless)}
          ) as newest
          where newest.name is not null
          order by newest.at desc, newest.sequence desc limit 1
      ) as name
      from unnest(${nameless.map(({ document }) => document)}::uuid[], ${nameless.map(({ entity }) => entity)}::integer[])
        with ordinality as w (document, entity, place)
      order by w.place`.execute(source.transaction);
  const names = new Map(nameless.map((document, index) => [document, rows[index]?.name ?? null]));
  return documents.map((document) => ({ ...document, name: document.name ?? names.get(document) ?? null }));
}

/** Documents in one fetch. */
const documentsAtOnce = 1_000;

/**
 * The newest entries of all documents whose newest entry is before a place, newest first. It reads the index of documents
 * once, whatever is fetched. A transaction can run it once.
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
