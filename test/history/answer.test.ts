import { expect, test } from 'vitest';
import { createSealer } from '../../src/core/sealing.ts';
import type { EntryRow } from '../../src/history/entries/entry-store.ts';
import { entryText } from '../../src/history/entries/entry-text.ts';
import type { HistoryReads } from '../../src/history/history-reads.ts';
import { createHistoryTexts } from '../../src/history/history-texts.ts';

const entryOf = (entityId: string): EntryRow => ({
  at: 1_000,
  type: 'update',
  entity: 'order',
  entityId,
  name: 'Ä',
  schemaVersion: null,
  actor: 'Jane Doe',
  related: null,
  paths: '{}',
});

test('an answer has the first entries that fit maxBytes, and the number left out', async () => {
  const entries = ['a', 'b', 'c'].map(entryOf);
  const later = ['d'].map(entryOf);
  async function* pieces() {
    yield later;
  }
  const texts = createHistoryTexts({
    findPage: async () => ({ plan: 'tallies', total: 9, entries, pieces: pieces() }),
    reads: {} as HistoryReads,
    sealer: createSealer([new Uint8Array(32)]),
    now: () => 0,
  });
  const bytes = Buffer.byteLength(entryText(entryOf('a')));
  for (const [maxBytes, shown] of [
    [bytes - 1, 0],
    [bytes, 1],
    [3 * bytes - 1, 2],
    [4 * bytes, 4],
  ] as const) {
    const found = await texts.changes('acme', { q: '', page: 1, size: 4, maxBytes });
    const { shown: has, left, cut } = found;
    // an entry that just fits is not cut
    expect({ maxBytes, shown: has, left, cut }).toEqual({ maxBytes, shown, left: 4 - shown, cut: 0 });
    expect(JSON.parse(found.text)).toMatchObject({ items: { length: shown }, totalElements: 9 });
  }
});
