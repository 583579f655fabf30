import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formBatch } from '../../../src/delivery/batches/form-batch.ts';
import type { DeliveredChange, ReadMatches } from '../../../src/delivery/changes.ts';
import { checkLaw } from '../../support/oracle/law.ts';
import { deliveredChange } from '../../support/server/delivered-changes.ts';

/** What of a history a position has: a change that matches, one that does not, or one that retention dropped. */
type Place = 'short' | 'long' | 'old' | 'other' | 'expired';

function changeAt(position: number, place: Place): DeliveredChange {
  const change = deliveredChange(position, place === 'long' ? { paths: JSON.stringify({ x: 'y'.repeat(300) }) } : {});
  return place === 'old'
    ? { ...change, recordedAt: change.at + 60_001 }
    : { ...change, recordedAt: change.at + 60_000 };
}

/** Reads as the history does: `portion` positions at once at most. */
function readerOf(places: readonly Place[], portion: number): ReadMatches {
  return async (_tenant, { after, maxItems, maxPositions = 10_000, maxBytes = Number.POSITIVE_INFINITY }) => {
    const items: DeliveredChange[] = [];
    let position = after.position;
    let room = maxBytes;
    let expired = 0;
    const end = Math.min(places.length, after.position + Math.min(maxPositions, portion));
    while (position < end && items.length < maxItems) {
      const place = places[position];
      if (place !== undefined && place !== 'other' && place !== 'expired') {
        const change = changeAt(position + 1, place);
        if (items.length > 0 && change.text.length > room) break;
        items.push(change);
        room -= change.text.length;
      }
      if (place === 'expired') expired += 1;
      position += 1;
    }
    const reached = { position, fingerprint: 7 };
    return { items, reached, cursor: '', caughtUp: position === places.length, expired };
  };
}

const selection = {
  q: '',
  maxAge: 60_000,
  textsOf: (changes: readonly DeliveredChange[]) => changes.map(({ text }) => `{"wrapped":${text}}`),
};

test('the law of batches: one after another they have each matching change once, in order, within their bounds', async () => {
  const places = fc.array(fc.constantFrom<Place>('short', 'short', 'long', 'old', 'other', 'expired'), {
    maxLength: 60,
  });
  const limits = fc.record({
    maxChanges: fc.integer({ min: 1, max: 8 }),
    maxBytes: fc.integer({ min: 100, max: 1_500 }),
  });
  const portion = fc.integer({ min: 1, max: 20 });
  await checkLaw(fc.tuple(places, limits, portion), { runs: 100 }, async ([all, bounds, most]) => {
    const read = readerOf(all, most);
    const sent: number[] = [];
    let after = { position: 0, fingerprint: 7 };
    let skipped = 0;
    let expired = 0;
    for (let isOver = false; !isOver; ) {
      const batch = await formBatch(read, 'shop', { ...selection, after }, bounds);
      const bytes = batch.texts.reduce((sum, text) => sum + text.length + 1, 0);
      expect(batch.changes.length).toBeLessThanOrEqual(bounds.maxChanges);
      if (batch.changes.length > 1) expect(bytes).toBeLessThanOrEqual(bounds.maxBytes);
      expect(batch.isFull || batch.caughtUp || batch.changes.length === 0).toBe(true);
      sent.push(...batch.changes.map(({ position }) => position));
      skipped += batch.skipped;
      expired += batch.expired;
      // The same bounds are the same batch.
      const repeat = { ...selection, after, until: batch.reached.position };
      const unlimited = { maxChanges: 1_000, maxBytes: 1_048_576 };
      expect((await formBatch(read, 'shop', repeat, unlimited)).texts).toEqual(batch.texts);
      isOver = batch.caughtUp;
      after = batch.reached;
    }
    const isSent = (place: Place) => place === 'short' || place === 'long';
    expect(sent).toEqual(all.flatMap((place, index) => (isSent(place) ? [index + 1] : [])));
    expect(skipped).toBe(all.filter((place) => place === 'old').length);
    expect(expired).toBe(all.filter((place) => place === 'expired').length);
  });
});

test('a change that was older than maxAge when it was recorded is left out, and one that was as old is not', async () => {
  const read = readerOf(['old', 'short'], 100);
  const after = { position: 0, fingerprint: 0 };
  const bounds = { maxChanges: 10, maxBytes: 10_000 };
  const { changes, skipped } = await formBatch(read, 'shop', { ...selection, after }, bounds);
  expect([changes.map(({ position }) => position), skipped]).toEqual([[2], 1]);
  expect((await formBatch(read, 'shop', { ...selection, after, maxAge: undefined }, bounds)).skipped).toBe(0);
});
