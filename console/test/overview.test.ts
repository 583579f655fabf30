import { expect, test } from 'vitest';
import { barsOf, sumsOf } from '../src/overview/bars.ts';
import { troubleOf } from '../src/overview/trouble.ts';

const hour = 3_600_000;
const bucket = (at: string, count: number) => ({ at, count, create: count, update: 0, delete: 0 });

test('smaller buckets of a young history become bars of a day, and days without any are there', () => {
  const buckets = [
    bucket('2026-11-20T18:00:00.000Z', 1),
    bucket('2026-11-21T00:00:00.000Z', 2),
    bucket('2026-11-21T06:00:00.000Z', 4),
  ];
  const span = { width: 24 * hour, from: Date.parse('2026-11-18T05:00:00Z'), to: Date.parse('2026-11-21T07:00:00Z') };
  const { starts, counts } = barsOf({ buckets }, span);
  expect(starts.map((start) => new Date(start).toISOString().slice(0, 10))).toEqual([
    '2026-11-18',
    '2026-11-19',
    '2026-11-20',
    '2026-11-21',
  ]);
  expect(counts.create).toEqual([0, 0, 1, 6]);
  expect(sumsOf({ buckets })).toEqual({ create: 7, update: 0, delete: 0 });
});

test('disabled agents come first, then those with most failures, each cause once', () => {
  const failed = [
    { triggerAgentId: 'b', cause: 'timeout' as const },
    { triggerAgentId: 'c', cause: 'timeout' as const },
    { triggerAgentId: 'c', cause: 'timeout' as const },
    { triggerAgentId: 'c' },
  ];
  expect(troubleOf([{ id: 'a', disabledReason: 'Refused' }], failed)).toEqual([
    { id: 'a', disabledReason: 'Refused', failures: 0, causes: [] },
    { id: 'c', disabledReason: undefined, failures: 3, causes: ['timeout'] },
    { id: 'b', disabledReason: undefined, failures: 1, causes: ['timeout'] },
  ]);
});
