import { entriesOf, memberOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { mask } from '../../core/mask.ts';
import type { Change, ChangeType } from '../change.ts';
import { maxMaskedPath, maxMaskedPaths } from '../masked-differences.ts';

export const operations: Record<ChangeType, string> = { create: 'insert', update: 'update', delete: 'delete' };

/**
 * A change as an import line, to store a rejected change or to send it on with `id` as its identity. `sides`: JSON text
 * of an object with the masked members `before` and `after`.
 */
export function lineOfChange(change: Change, sides: string, id?: string): string {
  const parsed = parseJson(sides);
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
    // With an incomplete `before`, its missing columns would appear as new.
    ['before', type === 'create' || isWhole(change) ? undefined : memberOf(parsed, 'before')],
    ['after', type === 'delete' ? undefined : memberOf(parsed, 'after')],
    ['masked', maskedOf(change)],
  ];
  return objectText(members.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])));
}

/** JSON text of the paths of masked values that differ although their texts are equal. */
function maskedOf({ type, paths }: Change): string | undefined {
  if (type !== 'update' || !paths.includes(mask)) return undefined;
  const masked: string[] = [];
  for (const [path, sides] of entriesOf(parseJson(paths))) {
    const [before, after] = [memberOf(sides, 'before'), memberOf(sides, 'after')];
    if (before !== undefined && after !== undefined && compactText(before) === compactText(after)) masked.push(path);
  }
  if (masked.length === 0) return undefined;
  const isTooLong =
    masked.some(({ length }) => length > maxMaskedPath) ||
    masked.reduce((sum, { length }) => sum + length, 0) > maxMaskedPaths;
  return JSON.stringify(isTooLong ? [''] : masked);
}

function isWhole({ type, marks }: Change): boolean {
  return type === 'update' && marks !== undefined && JSON.parse(marks).whole === true;
}
