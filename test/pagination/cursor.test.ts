import { expect, test } from 'vitest';
import { createSealer } from '../../src/core/sealing.ts';
import { openCursor, sealCursor } from '../../src/pagination/cursor.ts';

const sealer = createSealer([Buffer.alloc(32, 1)]);
const scope = { tenant: 'acme', operation: 'instances', filter: '', sort: '_id' };
const now = Date.UTC(2026, 8, 15);
const lifetime = 24 * 60 * 60 * 1000;

test('a cursor is good until its day is over, and not at the end of it', () => {
  const position = { row: { keys: [], id: 'a' }, after: true };
  const cursor = sealCursor(sealer, scope, position, now);
  expect(openCursor(sealer, scope, cursor, 0, now + lifetime - 1)).toEqual(position);
  expect(() => openCursor(sealer, scope, cursor, 0, now + lifetime)).toThrow('The cursor is not valid');
});

test('the length of a cursor tells the length of what is in it to 16 bytes and no closer', () => {
  const ids = Array.from({ length: 64 }, (_, index) => 'x'.repeat(index + 1));
  const lengths = ids.map((id) => sealCursor(sealer, scope, { row: { keys: [], id }, after: true }, now).length);
  expect(new Set(lengths).size).toBeLessThanOrEqual(5);
  for (const id of ids) {
    const cursor = sealCursor(sealer, scope, { row: { keys: [], id }, after: true }, now);
    expect(openCursor(sealer, scope, cursor, 0, now)).toEqual({ row: { keys: [], id }, after: true });
  }
});
