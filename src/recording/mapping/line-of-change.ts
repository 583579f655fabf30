import { entriesOf, memberOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { mask } from '../../core/mask.ts';
import type { Change, ChangeType } from '../change.ts';
import { maxMaskedPath, maxMaskedPaths } from '../masked-differences.ts';

export const operations: Record<ChangeType, string> = { create: 'insert', update: 'update', delete: 'delete' };

/**
 * A change as a line of an import, to be kept where it cannot be recorded now. `sides` is JSON text of an object with the members
 * `before` and `after`, masked. `id` is for a line that is sent on: it then has the identity of that id.
 */
export function lineOfChange(change: Change, sides: string, id?: string): string {
  const given = parseJson(sides);
  const { type, entity, entityId, name, actor, schemaVersion, related, context } = change;
  const members: [string, string | JsonNode | undefined][] = [
    ['id', id && JSON.stringify(id)],
    ['op', JSON.stringify(operations[type])],
    ['entity', JSON.stringify(entity)],
    ['entityId', JSON.stringify(entityId)],
    ['at', JSON.stringify(new Date(change.at).toISOString())],
    ['name', name === undefined ? undefined : JSON.stringify(name)],
    ['actor', JSON.stringify(actor)],
    ['schemaVersion', schemaVersion === undefined ? undefined : JSON.stringify(schemaVersion)],
    ['related', related.length === 0 ? undefined : JSON.stringify(related)],
    ['context', context],
    // A row before that is not whole would show columns that are not in it as new.
    ['before', type === 'create' || isWhole(change) ? undefined : memberOf(given, 'before')],
    ['after', type === 'delete' ? undefined : memberOf(given, 'after')],
    ['masked', maskedOf(change)],
  ];
  return objectText(members.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])));
}

/** The paths of values that differ though their texts do not, because they are masked, as JSON text. */
function maskedOf({ type, paths }: Change): string | undefined {
  if (type !== 'update' || !paths.includes(mask)) return undefined;
  const found: string[] = [];
  for (const [path, sides] of entriesOf(parseJson(paths))) {
    const [before, after] = [memberOf(sides, 'before'), memberOf(sides, 'after')];
    if (before !== undefined && after !== undefined && compactText(before) === compactText(after)) found.push(path);
  }
  if (found.length === 0) return undefined;
  const isTooLong =
    found.some(({ length }) => length > maxMaskedPath) ||
    found.reduce((sum, { length }) => sum + length, 0) > maxMaskedPaths;
  return JSON.stringify(isTooLong ? [''] : found);
}

function isWhole({ type, marks }: Change): boolean {
  return type === 'update' && marks !== undefined && JSON.parse(marks).whole === true;
}
