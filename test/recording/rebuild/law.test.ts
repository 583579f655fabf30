import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rebuildDocument } from '../../../src/recording/rebuild/document-rebuild.ts';
import type { RebuildEntry } from '../../../src/recording/rebuild/entry-changes.ts';
import {
  continueRebuild,
  nothingRebuilt,
  type PartialRebuild,
  rebuildFromLater,
  rebuiltDocument,
} from '../../../src/recording/rebuild/incremental-rebuild.ts';
import { checkLaw } from '../../support/oracle/law.ts';
import { entriesOf, isSame, type Written, writings } from '../../support/oracle/written-documents.ts';

function rebuildOneByOne(until: readonly RebuildEntry[], later: readonly RebuildEntry[]) {
  const portionOf = ({ type, paths, marks, isMarked }: RebuildEntry) => ({
    types: [type],
    paths: [paths],
    marks: [marks],
    isMarked: [isMarked],
  });
  let known: PartialRebuild = nothingRebuilt;
  for (const entry of until) known = structuredClone(continueRebuild.here(known, portionOf(entry)));
  for (const entry of later) {
    const found = rebuildFromLater.here(known, portionOf(entry));
    known = structuredClone(found.state);
    if (!found.hasMore) break;
  }
  return rebuiltDocument(known);
}

describe('laws', () => {
  test('from the entries and marks of any history every document comes back as it was written', async () => {
    const sides = fc.constantFrom<Written['sides']>('both', 'both', 'after');
    await checkLaw(writings(sides, fc.constant(false)), { runs: 80 }, async (written) => {
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

  test('complete never says so wrongly, and portions of one entry make no difference: sides that are missing, entries from before marks, a history without its beginning', async () => {
    const sides = fc.constantFrom<Written['sides']>('both', 'both', 'both', 'after', 'before', 'none');
    const scenario = fc.record({ written: writings(sides, fc.boolean()), dropped: fc.nat(3) });
    let complete = 0;
    await checkLaw(scenario, { runs: 150 }, async ({ written, dropped }) => {
      const entries = entriesOf(written);
      for (const [index, { document: expected }] of entries.entries()) {
        if (index < dropped) continue;
        const until = entries.slice(dropped, index + 1).flatMap(({ entry }) => entry ?? []);
        const later = entries.slice(index + 1).flatMap(({ entry }) => entry ?? []);
        const rebuilt = rebuildDocument(until, later);
        const inPortions = rebuildOneByOne(until, later);
        expect({ ...inPortions, document: undefined }).toEqual({ ...rebuilt, document: undefined });
        expect(isSame(inPortions.document, rebuilt.document), `${inPortions.document} for ${rebuilt.document}`).toBe(
          true,
        );
        if (!rebuilt.complete) continue;
        complete += 1;
        expect(isSame(rebuilt.document, expected), `${index}: ${rebuilt.document} for ${expected}`).toBe(true);
      }
    });
    expect(complete).toBeGreaterThan(50);
  });
});
