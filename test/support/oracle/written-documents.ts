import * as fc from 'fast-check';
import { parseJson } from '../../../src/core/json/parse.ts';
import { type ChangeType, differenceOfChange } from '../../../src/recording/change.ts';
import { isUnchanged } from '../../../src/recording/paths.ts';
import type { RebuildEntry } from '../../../src/recording/rebuild/entry-changes.ts';

const key = fc.constantFrom('a', 'b', 'c', '0', '1', '2', '', '.', 'a.b', '\\', '__proto__', '10', '01', 'é"');
const leaf = fc.constantFrom(
  '1',
  '1.10',
  '-0',
  '9007199254740993',
  '1E400',
  'null',
  'true',
  '""',
  '"a"',
  '"\\u0041.\\\\"',
);

/** JSON text of small documents, in which containers come and go. */
const { value: document } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.constantFrom('{}', '[]'),
    fc.array(tie('value'), { maxLength: 4 }).map((elements) => `[${elements.join(',')}]`),
    fc
      .uniqueArray(fc.tuple(key, tie('value')), { maxLength: 4, selector: ([name]) => name })
      .map((members) => `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`),
  ),
}));

/** A change of one document. */
export interface Written {
  type: ChangeType;
  after: string | undefined;
  /** Which sides the change came with. */
  sides: 'both' | 'after' | 'before' | 'none';
  /** Whether the entry is from before marks. */
  isOld: boolean;
}

/** What is written into one document, one after the other. */
export function writings(sides: fc.Arbitrary<Written['sides']>, isOld: fc.Arbitrary<boolean>): fc.Arbitrary<Written[]> {
  const step = fc.record({ after: fc.option(document, { freq: 6, nil: undefined }), sides, isOld });
  return fc.array(step, { minLength: 1, maxLength: 8 }).map((steps) => {
    let exists = false;
    return steps.flatMap((one) => {
      const isDelete = one.after === undefined;
      if (isDelete && !exists) return [];
      const type: ChangeType = isDelete ? 'delete' : exists ? 'update' : 'create';
      exists = !isDelete;
      return [{ ...one, type }];
    });
  });
}

/** The entries of what was written; an update that changes nothing has none. */
export function entriesOf(
  written: readonly Written[],
): { entry: RebuildEntry | undefined; document: string | undefined }[] {
  let before: string | undefined;
  return written.map(({ type, after, sides, isOld }) => {
    const hasBefore = type !== 'create' && (sides === 'both' || sides === 'before');
    const hasAfter = type !== 'delete' && (sides === 'both' || sides === 'after');
    const node = (text: string | undefined) => (text === undefined ? undefined : parseJson(text));
    const difference = differenceOfChange(
      type,
      hasBefore ? node(before) : undefined,
      hasAfter ? node(after) : undefined,
    );
    before = after;
    if (difference === undefined) return { entry: undefined, document: after };
    const { paths, marks } = difference;
    return { entry: { type, paths, marks: isOld ? null : (marks ?? null), isMarked: !isOld }, document: after };
  });
}

/** Whether two documents are the same, whatever the order of keys. Undefined: there is none. */
export function isSame(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return isUnchanged(parseJson(one), parseJson(other));
}
