import { parseJson } from '../../core/json/parse.ts';
import { type Change, contentOf, differenceOfChange } from '../change.ts';
import { isUnchanged } from '../paths.ts';
import type { RebuiltDocument } from '../rebuild/document-rebuild.ts';
import type { Mapping } from './mapping.ts';
import type { MappedDocument } from './row-change.ts';
import { ruledDocument } from './ruled-document.ts';

/**
 * The change of a snapshot document against the history: a create if it does not exist there, an update if values
 * differ, undefined if they are equal. Throws `PathsTooLargeError`.
 */
export function changeOfSnapshot(
  { change, document }: Extract<MappedDocument, { kind: 'document' }>,
  stored: RebuiltDocument | undefined,
  mapping: Mapping | undefined,
): Change | undefined {
  if (stored?.document === undefined) return change;
  const after = parseJson(document);
  const before = parseJson(ruledDocument(mapping, change.entity, stored.document));
  if (isUnchanged(before, after)) return undefined;
  // The history may have only part of the document. A comparison would show values that the row never had.
  const difference = differenceOfChange('update', stored.complete ? before : undefined, after);
  const { paths: _paths, marks: _marks, ...members } = change;
  return difference && { ...members, ...contentOf(difference), type: 'update' };
}
