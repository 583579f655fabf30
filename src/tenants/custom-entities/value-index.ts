import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { buildIndex } from '../../postgres/indexes/build-index.ts';
import { step } from '../../query/array-values.ts';
import { isArrayIndex } from '../../query/document-field.ts';
import { dropUnfinished } from './unfinished-index.ts';

/** The index that answers `field:value` of any field of instances (docs/decisions/documents.md). */
export const valueIndexName = 'custom_instance_narrow_values';

/** The index that leads to the instances which that index leaves out. */
const wideIndexName = 'custom_instance_wide';

/**
 * Maximum number of JSON values of an instance in the index. The index takes some 10 µs for each value, so an instance
 * of 100,000 values would delay the next writer by a second.
 */
export const maxIndexedValues = 5_000;

// Each tenant and type has its own object around the value, so the same value of another tenant is another key of the
// index.
const indexed = sql`jsonb_set('{}', array[tenant || ' ' || type], fields)`;
/**
 * A key of digits can be a key of an object or a place in an array. Each such key doubles the ways to write the path.
 */
const maxVariants = 4;
const maxSegments = 16;
/** A document has at most this many levels of arrays and objects. */
const maxLevels = 100;

/**
 * A condition that the index answers. It is true for every instance of the type that has a value equal to `json`, a
 * scalar as JSON text, at the path, also within arrays. It is also true for some other instances. Undefined if the path
 * is too long or has too many keys of digits. Instances with too many values are read one by one.
 */
export function containsValue(
  { tenant, type }: { tenant: string; type: string },
  path: readonly string[],
  json: string,
): RawBuilder<SqlBool> | undefined {
  const variants = variantsOf(path);
  if (variants.length > maxVariants || path.length > maxSegments) return undefined;
  const root = `$${step(`${tenant} ${type}`)}`;
  // PostgreSQL goes on in the elements of one array by itself, which is quick. Arrays within arrays need a step each.
  const quick = variants.map((steps) => `${root}${steps.join('')}[*]`);
  const deep = variants.map((steps) => root + steps.map((one) => one + '[*]'.repeat(maxLevels)).join(''));
  const conditions = [...quick, ...deep].map(
    (values) => sql<SqlBool>`(wide = 0 and ${indexed} @? ${`${values} ? (@ == ${json})`}::jsonpath)`,
  );
  return sql`(${sql.join(conditions, sql` or `)} or wide = 1)`;
}

/** The steps of the path. A step to a place in an array is left out, because the index does not have places. */
function variantsOf(path: readonly string[]): string[][] {
  let variants: string[][] = [[]];
  for (const key of path) {
    const members = variants.map((steps) => [...steps, step(key)]);
    variants = isArrayIndex(key) ? [...members, ...variants] : members;
    if (variants.length > maxVariants) return variants;
  }
  return variants;
}

/**
 * Builds the index if it does not exist; returns true if this call has built it.
 * Clients can read and write instances during the build. If several processes call it at once, one of them builds the
 * index.
 */
export async function createValueIndex(db: Database): Promise<boolean> {
  await buildIndex(db, {
    name: wideIndexName,
    table: 'custom_instance',
    definition: sql`(tenant, type) where wide = 1`,
  });
  const state = await dropUnfinished(db, valueIndexName);
  if (state === 'missing') {
    // The writer that fills the list of pending values empties it, so the list is short.
    await sql`create index concurrently if not exists ${sql.ref(valueIndexName)} on custom_instance
      using gin ((${indexed}) jsonb_path_ops) with (gin_pending_list_limit = 256) where wide = 0`.execute(db);
    // The planner needs to know which values are frequent.
    await sql`analyze custom_instance`.execute(db);
  }
  return state === 'missing';
}
