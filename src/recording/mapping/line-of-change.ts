import { memberOf, objectText } from '../../json/members.ts';
import { parseJson } from '../../json/parse.ts';
import type { JsonNode } from '../../json/tape.ts';
import type { Change, ChangeType } from '../change.ts';

const operations: Record<ChangeType, string> = { create: 'insert', update: 'update', delete: 'delete' };

/**
 * A change as a line of an import, to be kept where it cannot be recorded now. `sides` is JSON text of an object with the members
 * `before` and `after`, masked.
 */
export function lineOfChange(change: Change, sides: string): string {
  const given = parseJson(sides);
  const { type, entity, entityId, name, actor, schemaVersion, related, context } = change;
  const members: [string, string | JsonNode | undefined][] = [
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
  ];
  return objectText(members.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])));
}

function isWhole({ type, marks }: Change): boolean {
  return type === 'update' && marks !== undefined && JSON.parse(marks).whole === true;
}
