import { type RawBuilder, sql } from 'kysely';
import { idField } from '../../pagination/sort.ts';
import { documentField } from '../../query/array-values.ts';

/** The value of a field; `_id` is the document's own id. Sort indexes use the same expression. */
export function documentValue(path: readonly string[]): RawBuilder<unknown> {
  return path.length === 1 && path[0] === idField ? sql`to_jsonb(id)` : documentField(sql`fields`, path);
}
