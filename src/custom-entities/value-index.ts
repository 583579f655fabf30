import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { isArrayIndex } from '../query/document-field.ts';
import { projectedText } from '../query/json-projection.ts';
import { dropUnfinished } from './unfinished-index.ts';

/** The index that answers `field:value` of any field of instances (docs/decisions/0014-lists-and-indexes.md). */
export const valueIndexName = 'custom_instance_values';

// Each tenant and type has its own object around the value, so the same value of another tenant is another key of the
// index.
const indexed = sql`jsonb_set('{}', array[tenant || ' ' || type], fields)`;
/**
 * A key of digits can be a key of an object or an index of an array. Each such key doubles the ways to write the path.
 */
const maxVariants = 4;

/**
 * A condition that the index answers. It is true for every instance of the type whose value at the path equals `json`, a
 * scalar as JSON text. It is also true for some other instances. Undefined if the path has too many keys of digits.
 */
export function containsValue(
  { tenant, type }: { tenant: string; type: string },
  path: readonly string[],
  json: string,
): RawBuilder<SqlBool> | undefined {
  const variants = variantsOf(path, json);
  if (variants.length > maxVariants) return undefined;
  const conditions = variants.map(
    (variant) => sql<SqlBool>`${indexed} @> ${`{${JSON.stringify(`${tenant} ${type}`)}:${variant}}`}::jsonb`,
  );
  return sql`(${sql.join(conditions, sql` or `)})`;
}

/** The JSON texts of objects that have only the value at the path. */
function variantsOf(path: readonly string[], json: string): string[] {
  let variants = [json];
  for (const key of path.toReversed()) {
    const members = variants.map((inner) => `{${JSON.stringify(projectedText(key))}:${inner}}`);
    const elements = isArrayIndex(key) ? variants.map((inner) => `[${inner}]`) : [];
    variants = [...members, ...elements];
    if (variants.length > maxVariants) return variants;
  }
  return variants;
}

/**
 * Builds the index if it does not exist; returns true if this call has built it. Clients can read and write instances
 * during the build. If several processes call it at once, one of them builds the index.
 */
export async function createValueIndex(db: Database): Promise<boolean> {
  const state = await dropUnfinished(db, valueIndexName);
  if (state !== 'missing') return false;
  await sql`create index concurrently if not exists ${sql.ref(valueIndexName)} on custom_instance
    using gin ((${indexed}) jsonb_path_ops) with (gin_pending_list_limit = 1024)`.execute(db);
  // The planner needs to know which values are frequent.
  await sql`analyze custom_instance`.execute(db);
  return true;
}
