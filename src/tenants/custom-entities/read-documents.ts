import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { partsById, type RowOfPart, type TextParts } from '../../pagination/page-texts.ts';
import type { DocumentRows, Page, PageRequest, Paginator } from '../../pagination/paginator.ts';
import { maxPartBytes } from '../../pagination/pieces.ts';
import type { Collection } from '../../pagination/read-page.ts';
import { idField } from '../../pagination/sort.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { arrayValues, meetsArray } from '../../query/array-values.ts';
import type { DocumentCondition, DocumentQuery, Match } from '../../query/ast.ts';
import {
  type DocumentMapping,
  documentQueryToSql,
  isMapByLanguage,
  pathOfField,
  rangeOfTerm,
  regexTermsOf,
  textsByLanguage,
  type ValueRange,
} from '../../query/document-sql.ts';
import { projectedText, textOfProjection } from '../../query/json-projection.ts';
import { requiredText, withPlainRegexes } from '../../query/plain-regex.ts';
import { QueryError } from '../../query/query-error.ts';
import { RegexBudget, type RegexMatcherPool } from '../../query/regex-pool.ts';
import { keyRanges } from './key-ranges.ts';
import { documentValue, type FieldIndex, listFieldIndexes } from './sort-indexes.ts';
import { containsValue } from './value-index.ts';

export interface ReadContext {
  readonly db: Database;
  readonly regexes: RegexMatcherPool;
  readonly paginator: Paginator;
}

/** The types of a tenant. */
export function typesOf(tenant: string): DocumentRows {
  return { from: sql`custom_entity`, where: sql`tenant = ${tenant}` };
}

/** Documents whose fields are all indexed by value. */
interface IndexedRows extends DocumentRows {
  /** See DocumentMapping. */
  readonly contains?: DocumentMapping['contains'];
  /** The fields with a range index. */
  readonly fieldIndexes?: (db: Database) => Promise<readonly FieldIndex[]>;
}

/** The instances of a type. */
export function instancesOf(tenant: string, type: string): IndexedRows {
  return {
    from: sql`custom_instance`,
    where: sql`tenant = ${tenant} and type = ${type}`,
    contains: (path, json) => containsValue({ tenant, type }, path, json),
    fieldIndexes: listFieldIndexes,
  };
}

/** A page of the documents that match the query, each as JSON text. */
export async function findDocuments(
  { db, regexes, paginator }: ReadContext,
  documents: IndexedRows,
  documentQuery: DocumentQuery,
  pageRequest: PageRequest,
): Promise<Page> {
  const query = withPlainRegexes(documentQuery);
  const terms = regexTermsOf(query);
  const ranges = await findRanges(db, documents, query);
  const fetch = async (connection: Database | DatabaseTransaction, matched: ReadonlyMap<Match, readonly string[]>) => {
    const mapping: DocumentMapping = {
      document: sql`fields`,
      value: documentValue,
      column: (path) => (isId(path) ? sql`id` : undefined),
      contains: (path, json) => (path[0] === idField ? undefined : documents.contains?.(path, json)),
      range: (path, range) => ranges.get(nameOfRange(path, range)),
      matchedStrings: (term) => matched.get(term) ?? [],
    };
    const collection: Collection = {
      from: documents.from,
      where: sql`${documents.where} and ${documentQueryToSql(query, mapping)}`,
      id: sql`id`,
      field: documentValue,
      text: sql`document`,
      readTexts: (ids) => readTexts(db, documents, ids),
    };
    return await paginator.fetch(connection, pageRequest, collection);
  };
  if (terms.length === 0) return await fetch(db, new Map());
  // One snapshot for the strings of the pattern and the page.
  const work = async (transaction: DatabaseTransaction) => {
    const budget = new RegexBudget();
    const matched = new Map<Match, readonly string[]>();
    for (const term of terms) matched.set(term, await matchStrings(transaction, regexes, documents, term, budget));
    return await fetch(transaction, matched);
  };
  return await inTransaction(db, work, { isolation: 'repeatable read' });
}

/** Max. instances in a range of keys. Above that, comparing keys costs more than the exact condition. */
export const maxInRange = 20_000;

/** The conditions on keys for the ranges of the query that select few instances by an index. */
async function findRanges(
  db: Database,
  { from, where, fieldIndexes }: IndexedRows,
  query: DocumentQuery,
): Promise<ReadonlyMap<string, RawBuilder<SqlBool>>> {
  const found = new Map<string, RawBuilder<SqlBool>>();
  const ranges = rangesOf(query);
  if (ranges.length === 0 || fieldIndexes === undefined) return found;
  const indexes = await fieldIndexes(db);
  for (const { path, range } of ranges) {
    const name = nameOfRange(path, range);
    const index = indexes.find((candidate) => candidate.path.join('.') === path.join('.'));
    const keys = index === undefined ? [] : keyRanges(documentValue(path), index, range);
    if (keys.length === 0 || found.has(name)) continue;
    // Counts each range along the index, up to the maximum.
    const counts = keys.map(
      (key) => sql`(select count(*) from (select from ${from} where ${where} and ${key}
        limit ${maxInRange + 1}::integer) counted)`,
    );
    const { rows } = await sql<{ count: number }>`select (${sql.join(counts, sql` + `)})::integer as count`.execute(db);
    if ((rows[0]?.count ?? 0) <= maxInRange) found.set(name, sql`(${sql.join(keys, sql` or `)})`);
  }
  return found;
}

interface FieldRange {
  readonly path: readonly string[];
  readonly range: ValueRange;
}

function rangesOf(condition: DocumentCondition): FieldRange[] {
  const ofTerm = (field: string, term: Parameters<typeof rangeOfTerm>[0]): FieldRange[] => {
    const range = rangeOfTerm(term);
    return range === undefined ? [] : [{ path: pathOfField(field), range }];
  };
  switch (condition.kind) {
    case 'and':
    case 'or':
      return condition.operands.flatMap(rangesOf);
    case 'comparison':
      return ofTerm(condition.field, condition);
    case 'match': {
      const { field, matcher } = condition;
      if (matcher.kind === 'regex') return [];
      return (matcher.kind === 'list' ? matcher.items : [matcher]).flatMap((item) => ofTerm(field, item));
    }
  }
}

function nameOfRange(path: readonly string[], range: ValueRange): string {
  return JSON.stringify([path, range]);
}

function isId(path: readonly string[]): boolean {
  return path.length === 1 && (path[0] === 'id' || path[0] === idField);
}

/** The current texts of documents by id. */
async function readTexts(
  db: Database,
  { from, where }: DocumentRows,
  ids: readonly string[],
): Promise<ReadonlyMap<string, TextParts>> {
  const { rows } = await sql<RowOfPart>`
    select id, part, place from (select id, document from ${from} where ${where} and id = any(${ids}::text[])) found,
      text_parts(document, ${maxPartBytes}) with ordinality parts (part, place)`.execute(db);
  return partsById(rows);
}

/** Max. bytes read for matching a regular expression. The pattern has its own limit as well. */
const maxTriedBytes = 32 * 1024 * 1024;

/** The distinct strings of the field that match, by the linear-time engine (contract 4). */
async function matchStrings(
  transaction: DatabaseTransaction,
  regexes: RegexMatcherPool,
  { from, where }: DocumentRows,
  { field, matcher, position }: Match,
  budget: RegexBudget,
): Promise<string[]> {
  if (matcher.kind !== 'regex') return [];
  const path = pathOfField(field);
  const tried = documentValue(path);
  const direct = sql`select ${tried} as value from ${from} where ${where}`;
  const ofArrays = sql`select element.value from ${from}, jsonb_array_elements(${arrayValues(sql`fields`, path)}) element(value)
    where ${where} and ${meetsArray(sql`fields`, path)}`;
  const ofMaps = sql`select element.value from ${from}, jsonb_array_elements(${textsByLanguage(sql`fields`)}) element(value)
    where ${where}`;
  const parts = [direct, ...(isId(path) ? [] : [ofArrays]), ...(isMapByLanguage(path) ? [ofMaps] : [])];
  const values = sql.join(parts, sql` union all `);
  // Skips strings without the text that the pattern requires, because they cannot match.
  const required = projectedText(requiredText(matcher.source));
  const { rows } = await sql<{ bytes: number | null; text: string | null }>`
    with strings as materialized (
      select distinct value #>> '{}' as text from (${values}) tried
        where jsonb_typeof(value) = 'string' and strpos(value #>> '{}', ${required}) > 0
    )
    select size.bytes, strings.text
      from (select coalesce(sum(octet_length(text) + 1), 0)::bigint as bytes from strings) size
      left join strings on size.bytes <= ${maxTriedBytes}::bigint`.execute(transaction);
  if ((rows[0]?.bytes ?? 0) > maxTriedBytes) {
    throw new QueryError(position, `a regular expression on a field whose different values have at most 32 MiB in all`);
  }
  const strings = rows.flatMap(({ text }) => text ?? []);
  const matches = await regexes.matchNames(matcher.source, strings.map(textOfProjection), { position, budget });
  return strings.filter((_text, index) => matches[index] === 1);
}
