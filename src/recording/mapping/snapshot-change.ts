import { parseJson } from '../../core/json/parse.ts';
import { type Change, contentOf, differenceOfChange } from '../change.ts';
import type { MappedDocument } from './row-change.ts';

/**
 * The change of a document that a snapshot found, by what the history has of it: a create where it has nothing alive, an update where
 * its values differ, else `unchanged`. `alive` is JSON text. Throws `PathsTooLargeError`.
 */
export function changeOfSnapshot(
  { change, document }: Extract<MappedDocument, { kind: 'document' }>,
  alive: string | undefined,
): Change | 'unchanged' {
  if (alive === undefined) return change;
  const difference = differenceOfChange('update', parseJson(alive), parseJson(document));
  if (difference === undefined) return 'unchanged';
  const { marks: _ofCreate, ...rest } = change;
  return { ...rest, type: 'update', ...contentOf(difference) };
}
