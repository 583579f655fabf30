import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { compareCodePoints } from '../names/code-points.ts';
import { type DirectoryKey, documentsOf, readLastNames } from './latest-store.ts';
import { foldedWords } from './words.ts';

/** An entry that has a name. */
export interface NamedEntry {
  readonly entity: string;
  /** The hash of the id. */
  readonly document: string;
  readonly name: string;
}

/** The number of an entity type in the directory. */
export function entityNumber(entity: string): number {
  return createHash('sha256').update(entity).digest().readInt32BE(0);
}

function documentNumber(document: string): number {
  return Number.parseInt(document.slice(0, 8), 16) | 0;
}

/** The names of the entries that a fold of so many entries takes, each once for a document. */
export async function readNamedOfDeltas(
  transaction: DatabaseTransaction,
  tenant: string,
  entries: number,
): Promise<NamedEntry[]> {
  // One row has many as JSON. With one row for each name, parsing would block the event loop.
  const { rows } = await sql<{ named: [string, string, string][] }>`
    select json_agg(json_build_array(n.entity, n.document, n.name)) as named
      from (
        select k.entity, n.document, n.name, (row_number() over () - 1) / 4096 as batch
          from (
            select distinct n.kind, n.document, n.name
              from (
                select d.kinds, d.documents, d.names,
                       sum(cardinality(d.ats)) over (order by d.delta) - cardinality(d.ats) as before
                  from change_delta d where d.tenant = ${tenant} and d.position is not null
              ) as taken
              cross join lateral unnest(taken.kinds, taken.documents, taken.names) as n (kind, document, name)
              where taken.before < ${entries} and n.name is not null
          ) as n
          join change_kind k on k.tenant = ${tenant} and k.kind = n.kind
      ) as n
      group by n.batch`.execute(transaction);
  return rows.flatMap(({ named }) => named.map(([entity, document, name]) => ({ entity, document, name })));
}

/** Waits for the folds of a tenant in a transaction that is read committed: its later statements see what these did. */
export async function waitForFolds(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  await sql`select change_fold_lock(${tenant})`.execute(transaction);
}

/** Rows of the directory that are compared and written at once. */
const rowsAtOnce = 2_000;

/**
 * Puts the last names of documents into the directory. `entries` are some of their entries; where these do not decide, it
 * reads the others. One transaction at a time may do so for a tenant.
 */
export async function nameDocuments(
  transaction: DatabaseTransaction,
  tenant: string,
  entries: readonly NamedEntry[],
): Promise<void> {
  const rows = rowsOf(entries);
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    const portion = rows.slice(start, start + rowsAtOnce);
    const known = await readWords(transaction, tenant, portion);
    const isChanged = ({ words }: Row, index: number) => words.length > 1 || words[0] !== (known[index] ?? '');
    const changed = portion.filter(isChanged);
    // Without a row, no other entry has a name with words.
    const isOpen = (row: Row, index: number) =>
      isChanged(row, index) && (row.words.length > 1 || known[index] !== null);
    const lastWords = await readLastWords(transaction, tenant, portion.filter(isOpen));
    await writeWords(
      transaction,
      tenant,
      changed.map((row) => ({ ...row, words: lastWords.get(row) ?? row.words[0] ?? '' })),
    );
  }
}

interface Row extends DirectoryKey {
  /** The words of each name that the entries have, joined. */
  readonly words: string[];
}

function rowsOf(entries: readonly NamedEntry[]): Row[] {
  const rows = new Map<string, Row>();
  const numbers = new Map<string, number>();
  for (const { entity, document, name } of entries) {
    const number = numbers.get(entity) ?? entityNumber(entity);
    numbers.set(entity, number);
    const key = `${document.slice(0, 8)}${number}`;
    const row = rows.get(key) ?? { document: documentNumber(document), entity: number, words: [] };
    rows.set(key, row);
    const words = foldedWords(name).join(' ');
    if (!row.words.includes(words)) row.words.push(words);
  }
  return [...rows.values()];
}

/** Reads anew what is left of the names of documents, some of whose entries were deleted. */
export async function forgetNames(
  transaction: DatabaseTransaction,
  tenant: string,
  documents: readonly string[],
): Promise<void> {
  if (documents.length === 0) return;
  await waitForFolds(transaction, tenant);
  const { rows } = await sql<DirectoryKey>`
    select d.document, d.entity from change_document d
      where d.tenant = ${tenant} and d.document = any (${documents.map(documentNumber)}::integer[])`.execute(
    transaction,
  );
  const lastWords = await readLastWords(transaction, tenant, rows);
  await writeWords(
    transaction,
    tenant,
    rows.map((row) => ({ ...row, words: lastWords.get(row) ?? '' })),
  );
}

/** The words of these rows; null where there is none. */
async function readWords(
  transaction: DatabaseTransaction,
  tenant: string,
  keys: readonly DirectoryKey[],
): Promise<(string | null)[]> {
  const { rows } = await sql<{ words: string | null }>`
    select d.words
      from ${keysTable(keys)}
      left join change_document d on d.tenant = ${tenant} and d.document = w.document and d.entity = w.entity
      order by w.place`.execute(transaction);
  return rows.map(({ words }) => words);
}

async function writeWords(
  transaction: DatabaseTransaction,
  tenant: string,
  rows: readonly (DirectoryKey & { words: string })[],
): Promise<void> {
  const named = rows.filter(({ words }) => words !== '');
  if (named.length > 0) {
    await sql`
      insert into change_document as known (tenant, document, entity, words)
        select ${tenant}, w.document, w.entity, w.words
          from unnest(${named.map(({ document }) => document)}::integer[], ${named.map(({ entity }) => entity)}::integer[],
                      ${named.map(({ words }) => words)}::text[]) as w (document, entity, words)
        on conflict (tenant, document, entity) do update set words = excluded.words
          where known.words <> excluded.words`.execute(transaction);
  }
  const nameless = rows.filter(({ words }) => words === '');
  if (nameless.length > 0) {
    await sql`
      delete from change_document d using ${keysTable(nameless)}
        where d.tenant = ${tenant} and d.document = w.document and d.entity = w.entity`.execute(transaction);
  }
}

function keysTable(keys: readonly DirectoryKey[]) {
  return sql`unnest(${keys.map(({ document }) => document)}::integer[], ${keys.map(({ entity }) => entity)}::integer[])
    with ordinality as w (document, entity, place)`;
}

/** The words of the last names of all documents that share a key, by the key. */
async function readLastWords<Key extends DirectoryKey>(
  transaction: DatabaseTransaction,
  tenant: string,
  keys: readonly Key[],
): Promise<Map<Key, string>> {
  if (keys.length === 0) return new Map();
  const { rows: kinds } = await sql<{ kind: number; entity: string }>`
    select k.kind, k.entity from change_kind k where k.tenant = ${tenant}`.execute(transaction);
  const source = {
    transaction,
    tenant,
    since: 0,
    kinds: kinds.map(({ kind }) => kind),
    entityOfKind: kinds.map(({ entity }) => entityNumber(entity)),
    isEveryKind: true,
  };
  const documents = await documentsOf(source, keys);
  const named = await readLastNames(
    source,
    documents.map(({ key, document }) => ({ document, entity: key.entity })),
  );
  const words = new Map<Key, string[]>(keys.map((key) => [key, []]));
  for (const [index, { key }] of documents.entries()) words.get(key)?.push(...foldedWords(named[index] ?? ''));
  return new Map([...words].map(([key, all]) => [key, [...new Set(all)].sort(compareCodePoints).join(' ')]));
}
