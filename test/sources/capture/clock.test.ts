import { expect, test } from 'vitest';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { ResumeCheck } from '../../../src/sources/capture/gap.ts';
import type { Position } from '../../../src/sources/capture/position.ts';
import type { SourceTables } from '../../../src/sources/capture/source-tables.ts';
import { TransactionReader } from '../../../src/sources/capture/transaction-reader.ts';

const lastAt = Date.UTC(2026, 0, 15);
const position: Position = {
  systemIdentifier: '7',
  timeline: 1,
  slot: 'annals',
  phase: 'recording',
  commitLsn: 1000n,
  endLsn: 1100n,
  xid: 50,
  committedAt: BigInt(lastAt) * 1000n,
  changes: 0,
  complete: true,
  lastAt,
};

test.each([
  ['1 ms after the last one keeps its time', 1, 1],
  ['60 s before the last one has the time of that, so entries have the order of the commits', -60_000, 0],
  ['more than 60 s before the last one keeps its time', -60_001, -60_001],
])('a transaction %s', async (_what, committed, expected) => {
  const reader = new TransactionReader({
    mapping: readMapping('{"version":1}'),
    // A transaction without rows asks no table.
    tables: {} as SourceTables,
    systemIdentifier: position.systemIdentifier,
    resume: new ResumeCheck(position, position.endLsn),
    lastAt,
    warn: expect.unreachable,
  });
  const committedAt = BigInt(lastAt + committed) * 1000n;
  await reader.take({ kind: 'begin', commitLsn: 1200n, committedAt, xid: 51 });
  const transaction = await reader.take({ kind: 'commit', commitLsn: 1200n, endLsn: 1300n });
  expect(transaction?.at).toBe(lastAt + expected);
});
