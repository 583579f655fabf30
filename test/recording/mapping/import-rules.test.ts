import { describe, expect, test } from 'vitest';
import { JsonTape } from '../../../src/core/json/tape.ts';
import { readImportLine } from '../../../src/recording/mapping/import-line.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { Occurrences } from '../../../src/recording/occurrences.ts';

const { entities } = readMapping(
  '{"version":1,"entities":{"order":{"mask":["card.*","token"],"ignore":["etag"]},"customer":{}}}',
);
const canary = 'canary-4111';

function read(line: object) {
  const members = { op: 'update', entityId: '7', at: '2026-01-01T00:00:00Z', id: '1', ...line };
  return readImportLine(Buffer.from(JSON.stringify(members)), new JsonTape(), new Occurrences(), entities);
}

describe('an imported line of an entity with rules', () => {
  test('has masks in both documents and in its context, and not what is ignored', () => {
    const line = read({
      entity: 'order',
      before: { card: { number: `${canary}-1`, kind: null }, etag: canary, a: 1 },
      after: { card: { number: `${canary}-2`, kind: null }, etag: `${canary}-3`, a: 2 },
      context: { token: canary, etag: 'x', why: 'test' },
    });
    expect(line).toMatchObject({
      kind: 'change',
      change: {
        paths: '{"card.number":{"before":"********","after":"********"},"a":{"before":1,"after":2}}',
        context: '{"token":"********","etag":"x","why":"test"}',
      },
    });
    expect(JSON.stringify(line)).not.toContain(canary);
  });

  test('is unchanged where only what is ignored differs', () => {
    expect(read({ entity: 'order', before: { etag: 1 }, after: { etag: 2 } })).toEqual({ kind: 'unchanged' });
  });

  test('is rejected without its values', () => {
    const line = read({ entity: 'order', op: 'insert', after: { card: { number: canary } }, at: 'yesterday' });
    expect(line).toEqual({ kind: 'rejected', reason: '"at" is no RFC 3339 time with Z or an offset' });
  });

  test('of another entity is recorded as it is', () => {
    expect(read({ entity: 'invoice', op: 'insert', after: { card: { number: 1 } } })).toMatchObject({
      change: { paths: '{"card.number":{"after":1}}' },
    });
  });
});
