import { createHash } from 'node:crypto';
import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import pg from 'pg';
import { AnnalsError } from '../../core/errors.ts';
import { keysetOf } from '../../pagination/read-page.ts';
import { idField, parseSort, type Sort } from '../../pagination/sort.ts';
import type { Database } from '../../postgres/database.ts';
import { type MadeIndex, madeIndexes } from '../../postgres/indexes/build-index.ts';
import { documentField } from '../../query/array-values.ts';
import { dropUnfinished } from './value-index.ts';

/** A sort index. Serves instances in both directions, at any page. */
export interface SortIndex extends Omit<MadeIndex, 'comment'> {
  /** The sort that it serves, ending with `_id`. Null until the index is complete. */
  readonly sort: string | null;
}

/** An entry must fit into a third of a database page: this many keys of 128 characters and an id do. */
const maxFields = 4;
const namePrefix = 'custom_instance_sort_';

/**
 * Builds the index for a sort; idempotent. Does not block reads or writes. Takes as long as reading the instances of
 * all tenants. Throws validation_violation for a sort by `_id` alone or by too many fields.
 */
export async function createSortIndex(db: Database, text: string): Promise<SortIndex> {
  const sort = parseSort(text);
  const name = nameOf(sort.text);
  const columns = columnsOf(db, sort);
  const state = await dropUnfinished(db, name);
  const create = `create index concurrently if not exists ${name} on custom_instance ${columns}`;
  // Citus reports an existing index as invalid when it is created again, even with "if not exists".
  if (state === 'missing') await sql.raw(create).execute(db);
  await sql.raw(`comment on index ${name} is ${pg.escapeLiteral(sort.text)}`).execute(db);
  // Without statistics of the keys the planner may not use the index.
  await sql`analyze custom_instance`.execute(db);
  const created = (await listSortIndexes(db)).find((index) => index.name === name);
  if (created === undefined) throw new Error(`The index ${name} was created but cannot be found.`);
  return created;
}

/** The columns of the index for a sort, with literals: an index cannot have parameters. */
function columnsOf(db: Database, sort: Sort): string {
  const { keys } = keysetOf({ field: documentValue }, sort);
  if (keys.length === 0 || keys.length > maxFields) {
    throw new AnnalsError('validation_violation', `An index is for a sort of 1 to ${maxFields} fields apart from _id.`);
  }
  return `(tenant, type, ${keys.map((key) => `(${inlined(db, key)})`).join(', ')}, id)`;
}

/** The statement that rebuilds a database's sort index, by its name and comment. Undefined for any other index. */
export function sortIndexStatement(
  db: Database,
  { name, comment }: Pick<MadeIndex, 'name' | 'comment'>,
): string | undefined {
  if (comment === null || !name.startsWith(namePrefix)) return undefined;
  try {
    const sort = parseSort(comment);
    return nameOf(sort.text) === name ? `create index ${name} on custom_instance ${columnsOf(db, sort)}` : undefined;
  } catch (error) {
    if (error instanceof AnnalsError) return undefined;
    throw error;
  }
}

/** All sort indexes, including incomplete ones. */
export async function listSortIndexes(db: Database): Promise<SortIndex[]> {
  const indexes = await madeIndexes(db, `${namePrefix}%`);
  return indexes.map(({ comment, ...index }) => ({ ...index, sort: comment }));
}

/** The first field of an index, which answers ranges of its values. */
export interface FieldIndex {
  readonly path: readonly string[];
  /** Whether the index contains the inverted keys of the field. */
  readonly inverted: boolean;
}

/** The first field of each sort index. */
export async function listFieldIndexes(db: QueryExecutorProvider): Promise<FieldIndex[]> {
  const { rows } = await sql<{ sort: string }>`
    select obj_description(i.indexrelid) as sort from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indrelid = 'custom_instance'::regclass and i.indisvalid and starts_with(c.relname, ${namePrefix})
        and obj_description(i.indexrelid) is not null`.execute(db);
  return rows.flatMap((row) => {
    const { fields, idDescending } = parseSort(row.sort);
    return fields.slice(0, 1).map(({ path, descending }) => ({ path, inverted: descending !== idDescending }));
  });
}

/** Whether an index serves the sort, in either direction. */
export async function hasSortIndex(db: Database, { text }: Sort): Promise<boolean> {
  const mirrored = text.replaceAll(/:(ASC|DESC)(?=,|$)/g, (_direction, name) => (name === 'ASC' ? ':DESC' : ':ASC'));
  const { rows } = await sql`
    select from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indisvalid and c.relname = any(${[nameOf(text), nameOf(mirrored)]}::text[])`.execute(db);
  return rows.length > 0;
}

/** Returns false if the sort has no index. */
export async function dropSortIndex(db: Database, text: string): Promise<boolean> {
  const name = nameOf(parseSort(text).text);
  const exists = (await listSortIndexes(db)).some((index) => index.name === name);
  if (exists) await sql.raw(`drop index concurrently if exists ${name}`).execute(db);
  return exists;
}

function nameOf(sort: string): string {
  return namePrefix + createHash('sha256').update(sort).digest('hex').slice(0, 16);
}

function inlined(db: Database, expression: RawBuilder<unknown>): string {
  const { sql: text, parameters } = expression.compile(db);
  return text.replaceAll(/\$([0-9]+)/g, (_placeholder, number) => literal(parameters[Number(number) - 1]));
}

function literal(value: unknown): string {
  if (Array.isArray(value)) return `array[${value.map(literal).join(', ')}]`;
  return typeof value === 'boolean' ? String(value) : pg.escapeLiteral(String(value));
}

/** The value of a field; `_id` is the document's own id. Sort indexes use the same expression. */
export function documentValue(path: readonly string[]): RawBuilder<unknown> {
  return path.length === 1 && path[0] === idField ? sql`to_jsonb(id)` : documentField(sql`fields`, path);
}
