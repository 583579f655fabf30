import { sql } from 'kysely';
import { textAfter } from '../search/id-range.ts';
import { type DirectoryKey, type DocumentOfEntity, type DocumentSource, documentsOf } from './latest-store.ts';
import { entityNumber } from './name-documents.ts';
import { type DocumentMatch, foldedWords } from './words.ts';

/** Documents that are looked at one by one. More of them are found sooner in the order of time. */
export const maxCandidates = 5_000;
/** Entries with ids that begin so which are read at most. */
const maxEntriesOfIds = 20_000;

/**
 * Documents of which those that match are a part; undefined where there may be too many. `entities` are the names of the entity
 * types of the source.
 */
export async function findCandidates(
  source: DocumentSource,
  entities: readonly string[],
  { prefix, match }: { prefix: string; match: DocumentMatch },
): Promise<DocumentOfEntity[] | undefined> {
  const byId = await candidatesById(source, prefix);
  if (byId === undefined || match.words.length === 0) return byId;
  const unfolded = await unfoldedCandidates(source, match);
  if (unfolded === undefined) return undefined;
  const keys = await keysByWords(source, prefix);
  if (keys === undefined) return undefined;
  const placesOf = new Map<number, number[]>();
  for (const [place, entity] of entities.entries()) {
    const number = entityNumber(entity);
    placesOf.set(number, [...(placesOf.get(number) ?? []), place]);
  }
  const documents = await documentsOf(
    source,
    keys.filter(({ entity }) => placesOf.has(entity)),
  );
  const byWords = documents.flatMap(({ key, document }) =>
    (placesOf.get(key.entity) ?? []).map((entity) => ({ document, entity })),
  );
  const all = new Map([...byId, ...unfolded, ...byWords].map((one) => [`${one.document}${one.entity}`, one]));
  return all.size > maxCandidates ? undefined : [...all.values()];
}

async function candidatesById(
  { transaction, tenant, since, kinds, entityOfKind }: DocumentSource,
  prefix: string,
): Promise<DocumentOfEntity[] | undefined> {
  const before = textAfter(prefix);
  const entries = (isShort: boolean) => sql`(
    select e.kind, e.entity_id from change_entry e
      where e.tenant = ${tenant} and e.kind = any (${kinds}::bigint[]) and e.at >= ${since}
        and e.entity_id >= ${prefix} ${before === undefined ? sql`` : sql`and e.entity_id < ${before}`}
        and octet_length(e.entity_id) ${isShort ? sql`<=` : sql`>`} change_short_id()
      limit ${sql.lit(maxEntriesOfIds)})`;
  const { rows } = await sql<DocumentOfEntity & { entries: number }>`
    select change_document(found.entity_id) as document, k.entity, sum(found.entries)::bigint as entries
      from (
        select e.kind, e.entity_id, count(*) as entries
          from (${entries(true)} union all ${entries(false)}) as e group by e.kind, e.entity_id
      ) as found
      join unnest(${kinds}::bigint[], ${entityOfKind}::integer[]) as k (kind, entity) on k.kind = found.kind
      group by 1, 2`.execute(transaction);
  if (rows.reduce((sum, { entries: some }) => sum + some, 0) >= maxEntriesOfIds) return undefined;
  return rows.length > maxCandidates ? undefined : rows.map(({ document, entity }) => ({ document, entity }));
}

/** Those that were recorded since the last fold. */
async function unfoldedCandidates(
  { transaction, tenant, kinds, entityOfKind }: DocumentSource,
  match: DocumentMatch,
): Promise<DocumentOfEntity[] | undefined> {
  const { rows } = await sql<DocumentOfEntity & { name: string }>`
    select distinct n.document, k.entity, n.name
      from change_delta d
      cross join lateral unnest(d.kinds, d.documents, d.names) as n (kind, document, name)
      join unnest(${kinds}::bigint[], ${entityOfKind}::integer[]) as k (kind, entity) on k.kind = n.kind
      where d.tenant = ${tenant} and n.name is not null
      limit ${sql.lit(maxCandidates + 1)}`.execute(transaction);
  if (rows.length > maxCandidates) return undefined;
  return rows.filter(({ name }) => match.matchesName(name)).map(({ document, entity }) => ({ document, entity }));
}

/** The rows of the directory with all words of a text; undefined where there may be too many. */
async function keysByWords(
  { transaction, tenant }: DocumentSource,
  prefix: string,
): Promise<DirectoryKey[] | undefined> {
  // Neither tenants nor words have a quote or a backslash.
  const words = foldedWords(prefix).map((word) => `'${tenant}/${word}':*`);
  const { rows } = await sql<DirectoryKey>`
    select d.document, d.entity from change_document d
      where d.tenant = ${tenant}
        and array_to_tsvector(string_to_array(
          d.tenant || '/' || replace(d.words, ' ', ' ' || d.tenant || '/'), ' ')) @@ ${words.join(' & ')}::tsquery
      limit ${sql.lit(maxCandidates + 1)}`.execute(transaction);
  return rows.length > maxCandidates ? undefined : rows;
}
