import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { buildIndex, isBeingBuilt } from '../../postgres/indexes/build-index.ts';
import { isArrayIndex, step } from '../../query/array-values.ts';

/** The index for `field:value` of any field of instances (docs/decisions/documents.md). */
export const valueIndexName = 'custom_instance_narrow_values';

/** The index of the instances that the value index leaves out. */
const wideIndexName = 'custom_instance_wide';

/**
 * Max. JSON values of an indexed instance. Each value takes some 10 µs, so an instance of 100,000 would delay the next
 * writer by a second.
 */
export const maxIndexedValues = 5_000;

// Keyed by tenant and type, so that equal values of other tenants have other keys.
const indexed = sql`jsonb_set('{}', array[tenant || ' ' || type], fields)`;
/** A key of digits may be an object key or an array position. Each one doubles the variants of the path. */
const maxVariants = 4;
const maxSegments = 16;
/** Max. nesting of a document. */
const maxLevels = 100;

/**
 * A condition that the index answers: true for every instance of the type with a value equal to `json`, a scalar as
 * JSON text, at the path or within arrays there, and for some others. Undefined if the path is too long or has too many
 * digit keys. Instances with too many values are read one by one.
 */
export function containsValue(
  { tenant, type }: { tenant: string; type: string },
  path: readonly string[],
  json: string,
): RawBuilder<SqlBool> | undefined {
  const variants = variantsOf(path);
  if (variants.length > maxVariants || path.length > maxSegments) return undefined;
  const root = `$${step(`${tenant} ${type}`)}`;
  // `[*]` unnests one array quickly. Arrays within arrays need a step each.
  const quick = variants.map((steps) => `${root}${steps.join('')}[*]`);
  const deep = variants.map((steps) => root + steps.map((key) => key + '[*]'.repeat(maxLevels)).join(''));
  const conditions = [...quick, ...deep].map(
    (values) => sql<SqlBool>`(wide = 0 and ${indexed} @? ${`${values} ? (@ == ${json})`}::jsonpath)`,
  );
  return sql`(${sql.join(conditions, sql` or `)} or wide = 1)`;
}

/** The steps of the path, without array positions, which the index does not contain. */
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
 * Builds the index if missing; returns whether this call built it. Does not block reads or writes. Of several
 * concurrent calls, one builds.
 */
export async function createValueIndex(db: Database): Promise<boolean> {
  await buildIndex(db, {
    name: wideIndexName,
    table: 'custom_instance',
    definition: sql`(tenant, type) where wide = 1`,
  });
  const state = await dropUnfinished(db, valueIndexName);
  if (state === 'missing') {
    // Flushed by the writer that fills it, so the pending list stays short.
    await sql`create index concurrently if not exists ${sql.ref(valueIndexName)} on custom_instance
      using gin ((${indexed}) jsonb_path_ops) with (gin_pending_list_limit = 256) where wide = 0`.execute(db);
    // The planner needs the frequent values.
    await sql`analyze custom_instance`.execute(db);
  }
  return state === 'missing';
}

/**
 * Finds an index. One that another process is building counts as present. Drops an invalid one, which is useless and
 * blocks a new build.
 */
export async function dropUnfinished(db: Database, name: string): Promise<'there' | 'being made' | 'missing'> {
  const { rows } = await sql<{ valid: boolean; beingMade: boolean }>`
    select i.indisvalid as valid,
        ${isBeingBuilt(sql`i.indexrelid`, sql`c.relname`)} as "beingMade"
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relname = ${name} and c.relnamespace = current_schema()::regnamespace`.execute(db);
  const [index] = rows;
  if (index === undefined) return 'missing';
  if (index.valid) return 'there';
  if (index.beingMade) return 'being made';
  await sql`drop index concurrently if exists ${sql.ref(name)}`.execute(db);
  return 'missing';
}
