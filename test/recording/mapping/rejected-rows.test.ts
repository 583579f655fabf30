import { describe, expect, test } from 'vitest';
import { changesOfRow } from '../../../src/recording/mapping/changes-of-row.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { readRejectedRow } from '../../../src/recording/mapping/rejected-row.ts';
import type { RowChange } from '../../../src/recording/mapping/row-change.ts';
import { mapped, row } from './mapped-rows.ts';

describe('a row that can never be recorded', () => {
  test('is rejected with the reason, and without its masked and ignored values', () => {
    const [rejected] = mapped(
      { mask: ['card'], ignore: ['u'] },
      { type: 'create', after: { id: null, card: '4111', u: '4112', a: 1 } },
    );
    expect(rejected).toMatchObject({ kind: 'rejected', tenant: 'acme', reason: 'the column id of its id is null' });
    expect(JSON.stringify(rejected)).not.toContain('411');
  });

  test('says what the source does not give, or what the mapping does not name', () => {
    const reasons = (...of: Parameters<typeof mapped>) =>
      mapped(...of).map((change) => (change.kind === 'rejected' ? change.reason : change));
    expect(reasons({}, { type: 'delete' })).toEqual(['the source does not give the old row']);
    expect(reasons({}, { type: 'create', after: { id: '' } })).toEqual(['its id is empty']);
    expect(reasons({}, { type: 'create', after: { id: 'x'.repeat(1001) } })).toEqual([
      'its id has more than 1000 characters',
    ]);
    expect(reasons({}, { type: 'create', after: { a: 1 }, primaryKey: undefined })).toEqual([
      'no primary key of public.orders is known: name the columns of its "id" in the mapping',
    ]);
    expect(reasons({}, { type: 'delete', before: { id: 1 } }, { tenant: { column: 'org' } })).toEqual([
      'the source does not give its column org',
    ]);
    expect(mapped({}, { type: 'create', after: { id: 'x'.repeat(1000) } })).toMatchObject([{ kind: 'change' }]);
  });

  test('is one with JSON that nests deeper than a document may', () => {
    const mapping = readMapping('{"version":1,"tables":{"public.orders":{"entity":"order"}}}');
    const change = (levels: number): RowChange => ({
      table: 'public.orders',
      type: 'create',
      at: 1,
      identity: Buffer.alloc(16),
      primaryKey: ['id'],
      after: new Map([
        ['id', '7'],
        ['deep', `${'['.repeat(levels)}${']'.repeat(levels)}`],
      ]),
    });
    expect(changesOfRow(mapping, change(9_999), { actor: 'unknown' })).toMatchObject([{ kind: 'change' }]);
    expect(changesOfRow(mapping, change(10_000), { actor: 'unknown' })).toMatchObject([
      {
        kind: 'rejected',
        reason: expect.stringContaining('nested too deep'),
        content: expect.not.stringContaining('[['),
      },
    ]);
  });

  test('can be read back and mapped again', () => {
    const table = { mask: ['card'] };
    const change = {
      type: 'update',
      before: { id: null, a: 1 },
      after: { id: null, a: 2.5 },
      context: '{"ip":"x"}',
      who: { actor: 'Jane', actorId: 'u-17', onBehalfOf: { id: 'c-1' } },
      correlationId: 'r',
      derivedCorrelationId: 'd',
    } as const;
    const [rejected] = mapped(table, change);
    const again = readRejectedRow(rejected?.kind === 'rejected' ? rejected.content : '');
    expect(again).toEqual({
      table: 'public.orders',
      type: 'update',
      at: 1,
      identity: Buffer.alloc(16, 1),
      before: row({ id: null, a: 1 }),
      after: row({ id: null, a: 2.5 }),
      primaryKey: ['id'],
      who: { actor: 'Jane', actorId: 'u-17', onBehalfOf: { id: 'c-1' } },
      correlationId: 'r',
      derivedCorrelationId: 'd',
      context: '{"ip":"x"}',
    });
  });
});
