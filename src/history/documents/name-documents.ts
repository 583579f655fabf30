import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { int4Array, textArray } from '../../postgres/binary-arrays.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { compareCodePoints } from '../search/names/search-names.ts';
import { type DirectoryKey, documentsOf, readLastNames } from './latest-store.ts';

/** A name that entries of an entity type have. */
export interface NamedDocuments {
  readonly entity: string;
  readonly name: string;
  /** The numbers of the documents that had it, perhaps repeated. */
  readonly documents: readonly number[];
}

export function entityNumber(entity: string): number {
  return createHash('sha256').update(entity).digest().readInt32BE(0);
}

export function documentNumber(document: string): number {
  return Number.parseInt(document.slice(0, 8), 16) | 0;
}

/** The first and the last of consecutive deltas. */
export interface DeltaRange {
  readonly first: number;
  readonly last: number;
}

/** Adds the names in deltas that have a position to the directory. */
export async function nameDocumentsOfDeltas(
  transaction: DatabaseTransaction,
  tenant: string,
  { first, last }: DeltaRange,
): Promise<void> {
  // Many documents of a name in one value: a row for each would take several times as long to read.
  const { rows } = await sql<{ entity: string; name: string; documents: Buffer }>`
    select k.entity, n.name, string_agg(substring(uuid_send(n.document) for 4), ''::bytea) as documents
      from change_delta d
      cross join lateral unnest(d.kinds, d.documents, d.names) as n (kind, document, name)
      join change_kind k on k.tenant = ${tenant} and k.kind = n.kind
      where d.tenant = ${tenant} and d.delta between ${first} and ${last}
        and d.position is not null and n.name is not null
      group by k.entity, n.name`.execute(transaction);
  const named = rows.map(({ entity, name, documents: bytes }) => ({
    entity,
    name,
    documents: Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readInt32BE(index * 4)),
  }));
  await nameDocuments(transaction, tenant, named);
}

/** Rows of the directory that are compared and written at once. */
const rowsAtOnce = 2_000;

/**
 * Writes the last names of documents to the directory. `named` are names of some of their entries; where these do not
 * decide, the other entries are read. One transaction of a tenant may do so at a time.
 */
async function nameDocuments(
  transaction: DatabaseTransaction,
  tenant: string,
  named: readonly NamedDocuments[],
): Promise<void> {
  const rows = await rowsOf(named);
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    const portion = rows.slice(start, start + rowsAtOnce);
    const known = await readWords(transaction, tenant, portion);
    const isChanged = ({ words }: DirectoryRow, index: number) => words.length > 1 || words[0] !== (known[index] ?? '');
    const changed = portion.filter(isChanged);
    // Without a row, no other entry has a name with words.
    const isOpen = (row: DirectoryRow, index: number) =>
      isChanged(row, index) && (row.words.length > 1 || known[index] !== null);
    const lastWords = await readLastWords(transaction, tenant, portion.filter(isOpen));
    const written = changed.map((row) => ({ ...row, words: lastWords.get(row) ?? row.words[0] ?? '' }));
    await writeWords(transaction, tenant, written);
  }
}

/** Finds documents with these names for which the directory has other words than those of their last names. */
export async function findWrongNames(
  transaction: DatabaseTransaction,
  tenant: string,
  named: readonly NamedDocuments[],
): Promise<(entity: string, document: number) => boolean> {
  const rows = await rowsOf(named);
  const known = await readWords(transaction, tenant, rows);
  const words = new Map(rows.map((row, index) => [row, known[index] ?? '']));
  const open = rows.filter((row) => row.words.length > 1 || row.words[0] !== words.get(row));
  const lastWords = await readLastWords(transaction, tenant, open);
  const wrong = new Set(open.filter((row) => lastWords.get(row) !== words.get(row)).map(keyOfRow));
  return (entity, document) => wrong.has(keyOfRow({ entity: entityNumber(entity), document }));
}

function keyOfRow({ entity, document }: DirectoryKey): string {
  return `${entity} ${document}`;
}

interface DirectoryRow extends DirectoryKey {
  /** The words of each name that the entries have, joined. */
  readonly words: string[];
}

async function rowsOf(named: readonly NamedDocuments[]): Promise<DirectoryRow[]> {
  const slice = new TimeSlice();
  const rowsOfEntity = new Map<number, Map<number, DirectoryRow>>();
  const numbers = new Map<string, number>();
  for (const { entity, name, documents } of named) {
    if (slice.isDue) await slice.rest();
    const number = numbers.getOrInsertComputed(entity, entityNumber);
    const rows = rowsOfEntity.getOrInsertComputed(number, () => new Map());
    const words = foldedWords(name).join(' ');
    for (const document of documents) {
      const row = rows.getOrInsertComputed(document, () => ({ document, entity: number, words: [] }));
      if (!row.words.includes(words)) row.words.push(words);
    }
  }
  return [...rowsOfEntity.values()].flatMap((rows) => [...rows.values()]);
}

/** Reads the names of documents again, some of whose entries were deleted. */
export async function forgetNames(
  transaction: DatabaseTransaction,
  tenant: string,
  documents: readonly string[],
): Promise<void> {
  if (documents.length === 0) return;
  // Waits for folds, whose results the later statements of this read committed transaction see.
  await sql`select change_fold_lock(${tenant})`.execute(transaction);
  const { rows } = await sql<DirectoryKey>`
    select d.document, d.entity from change_document d
      where d.tenant = ${tenant} and d.document = any (${documents.map(documentNumber)}::integer[])`.execute(
    transaction,
  );
  const lastWords = await readLastWords(transaction, tenant, rows);
  const written = rows.map((row) => ({ ...row, words: lastWords.get(row) ?? '' }));
  await writeWords(transaction, tenant, written);
}

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
          from unnest(${int4Array(named.map(({ document }) => document))}::integer[],
                      ${int4Array(named.map(({ entity }) => entity))}::integer[],
                      ${textArray(named.map(({ words }) => words))}::text[]) as w (document, entity, words)
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
  return sql`unnest(${int4Array(keys.map(({ document }) => document))}::integer[], ${int4Array(keys.map(({ entity }) => entity))}::integer[])
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

/** The words of a text: runs of letters, digits and marks. */
function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/** Characters of a word that the directory stores: the index takes some 2,000 bytes. */
export const maxWordCharacters = 100;

/**
 * The words of a text as the directory stores them, in order, each once. Words that are equal by Unicode's simple
 * folding are equal here, and some others. Except for the final sigma, no mapping of Unicode depends on the neighbours.
 */
export function foldedWords(text: string): string[] {
  const folded = wordsOf(text).map((word) => word.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ'));
  return [...new Set(folded.map((word) => [...word].slice(0, maxWordCharacters).join('')))].sort(compareCodePoints);
}

export interface DocumentMatch {
  readonly isAny: boolean;
  /** The words that the name must have; none: no name matches. */
  readonly words: readonly string[];
  matchesId(entityId: string): boolean;
  matchesName(name: string | null): boolean;
  /** Whether the text is the whole name. */
  isName(name: string | null): boolean;
}

/**
 * A document matches if its id begins with the text, or if each word of the text begins a word of its name. Names are
 * case-insensitive (Unicode's simple folding).
 */
export function documentMatch(prefix: string): DocumentMatch {
  const words = wordsOf(prefix);
  // The flags `iu` fold as Unicode's simple folding does.
  const begins = words.map((word) => new RegExp(`^${RegExp.escape(word)}`, 'iu'));
  const whole = new RegExp(`^${RegExp.escape(prefix)}$`, 'iu');
  return {
    isAny: prefix === '',
    words,
    matchesId: (entityId) => entityId.startsWith(prefix),
    matchesName(name) {
      if (name === null || words.length === 0) return false;
      const ofName = wordsOf(name);
      return begins.every((begin) => ofName.some((word) => begin.test(word)));
    },
    isName: (name) => name !== null && words.length > 0 && whole.test(name),
  };
}
