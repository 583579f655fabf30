import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { isArrayIndex } from '../query/document-field.ts';
import { projectedText } from '../query/json-projection.ts';
import { dropUnfinished } from './unfinished-index.ts';

/** The index that answers `field:value` of any field of instances (docs/decisions/0014-lists-and-indexes.md). */
export const valueIndexName = 'custom_instance_values';

// In an object of its own for each tenant and type: the same value of another tenant is another key of the index.
const indexed = sql`jsonb_set('{}', array[tenant || ' ' || type], fields)`;
/** Keys of digits can be a key or a place in an array: each doubles the ways to write the path. */
const maxVariants = 4;

/**
 * A condition that the index answers: true of every instance of the type whose value at the path equals `json`, a scalar as
 * JSON text. It is true of some others too. undefined where the path has too many keys of digits.
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

/** The JSON texts of objects that have the value at the path, and nothing else. */
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
 * Makes the index where it is not there yet; true where this call has made it. Instances can be read and written meanwhile.
 * Several processes may call it at once: one makes it.
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
