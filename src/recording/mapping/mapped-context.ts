import { memberOf, membersOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { faultOfContext } from '../change-context.ts';
import { applyRules } from './apply-rules.ts';
import type { TableMapping } from './mapping.ts';
import type { Row } from './row-change.ts';
import { RowRejection } from './row-document.ts';
import { rowRules } from './row-rules.ts';

/**
 * The context of a row's change as JSON text: its columns, overridden by the members of `context`. Masks apply to
 * columns and members by name. Undefined if empty. Throws a `RowRejection`.
 */
export function mappedContext(table: TableMapping, row: Row, context: string | undefined): string | undefined {
  if (table.context.size === 0 && context === undefined) return undefined;
  const { masks } = rowRules(table);
  const columns = [...new Set(table.context.values())].flatMap((column): [string, string][] => {
    const value = row.get(column);
    return value === undefined || value === 'null' ? [] : [[column, value]];
  });
  const { after: shown } = applyRules(masks, { after: parseJson(objectText(columns)) });
  const members = new Map<string, JsonNode>();
  for (const [member, column] of table.context) {
    const value = shown && memberOf(shown, column);
    if (value !== undefined) members.set(member, value);
  }
  if (context !== undefined) for (const [member, value] of membersOf(parseJson(context))) members.set(member, value);
  if (members.size === 0) return undefined;
  const { after } = applyRules(masks, { after: parseJson(objectText(members)) });
  if (after === undefined) return undefined;
  const fault = faultOfContext(after);
  if (fault !== undefined) throw new RowRejection(`its context ${fault}`);
  return compactText(after);
}
