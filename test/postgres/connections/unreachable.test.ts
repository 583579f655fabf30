import pg from 'pg';
import { expect, test } from 'vitest';
import { isWorkerUnreachable } from '../../../src/postgres/connections/unreachable.ts';

// What the coordinator of a cluster says, word for word.
const refused =
  'connection to the remote node postgres@127.0.0.1:6511 failed with the following error: Connection refused';
const inCommit = 'could not commit transaction for shard 102008 on at least one active node';
const prepared = "failed to prepare transaction 'citus_0_18895_5163_110' on host 127.0.0.1:6511";
const exit = 'terminating connection due to unexpected postmaster exit';

test.each([
  [true, refused, { severity: 'ERROR', code: '08006' }],
  [true, exit, { severity: 'ERROR', code: '57P01' }],
  // The coordinator passes on the last words of a worker, and ends the session.
  [true, exit, { severity: 'FATAL', code: '57P01', detail: 'from 127.0.0.1:6512' }],
  [true, inCommit, { severity: 'ERROR', code: 'XX000' }],
  [true, prepared, { severity: 'ERROR', code: 'XX000' }],
  // These are of the coordinator itself.
  [false, exit, { severity: 'FATAL', code: '57P01' }],
  [false, exit, { severity: 'FATAL', code: '57P01', detail: 'from a client' }],
  [false, 'another internal error', { severity: 'ERROR', code: 'XX000' }],
  [false, 'duplicate key', { severity: 'ERROR', code: '23505' }],
])('%s for %s of %o', (expected, message, fields) => {
  const error = Object.assign(new pg.DatabaseError(message, message.length, 'error'), fields);
  expect(isWorkerUnreachable(error)).toBe(expected);
});
