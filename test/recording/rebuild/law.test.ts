import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/json/parse.ts';
import { type ChangeType, differenceOfChange } from '../../../src/recording/change.ts';
import { isUnchanged } from '../../../src/recording/paths.ts';
import type { RebuildEntry } from '../../../src/recording/rebuild/entry-changes.ts';
import { rebuildDocument } from '../../../src/recording/rebuild/rebuild-document.ts';
import { checkLaw } from '../../support/oracle/law.ts';

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

interface Written {
  type: ChangeType;
  after: string | undefined;
  /** Which sides the change came with. */
  sides: 'both' | 'after' | 'before' | 'none';
  /** Whether the entry is from before marks. */
  isOld: boolean;
}

/** What is written into one document, one after the other. */
function writings(sides: fc.Arbitrary<Written['sides']>, isOld: fc.Arbitrary<boolean>): fc.Arbitrary<Written[]> {
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
function entriesOf(written: readonly Written[]): { entry: RebuildEntry | undefined; document: string | undefined }[] {
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

function isSame(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return isUnchanged(parseJson(one), parseJson(other));
}

describe('laws', () => {
  test('from the entries and marks of any history every document comes back as it was written', async () => {
    const sides = fc.constantFrom<Written['sides']>('both', 'both', 'after');
    await checkLaw(writings(sides, fc.constant(false)), { runs: 600 }, async (written) => {
      const entries = entriesOf(written);
      for (const [index, { document: expected }] of entries.entries()) {
        const until = entries.slice(0, index + 1).flatMap(({ entry }) => entry ?? []);
        const later = entries.slice(index + 1).flatMap(({ entry }) => entry ?? []);
        const isDelete = expected === undefined;
        // A create without content would have no anchor; here each create has one.
        const rebuilt = rebuildDocument(until, later);
        expect({ ...rebuilt, document: undefined }).toEqual({ exists: !isDelete, complete: true, document: undefined });
        expect(isSame(rebuilt.document, expected), `${index}: ${rebuilt.document} for ${expected}`).toBe(true);
      }
    });
  });

  test('complete never says so wrongly: sides that are missing, entries from before marks, a history without its beginning', async () => {
    const sides = fc.constantFrom<Written['sides']>('both', 'both', 'both', 'after', 'before', 'none');
    const scenario = fc.record({ written: writings(sides, fc.boolean()), dropped: fc.nat(3) });
    let complete = 0;
    await checkLaw(scenario, { runs: 1500 }, async ({ written, dropped }) => {
      const entries = entriesOf(written);
      for (const [index, { document: expected }] of entries.entries()) {
        if (index < dropped) continue;
        const until = entries.slice(dropped, index + 1).flatMap(({ entry }) => entry ?? []);
        const rebuilt = rebuildDocument(
          until,
          entries.slice(index + 1).flatMap(({ entry }) => entry ?? []),
        );
        if (!rebuilt.complete) continue;
        complete += 1;
        expect(isSame(rebuilt.document, expected), `${index}: ${rebuilt.document} for ${expected}`).toBe(true);
      }
    });
    expect(complete).toBeGreaterThan(500);
  });
});
