import { expect, test } from 'vitest';
import { reportOf } from '../../src/cli/error-report.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { createSingleTestDatabase } from '../support/server/database.ts';

const database = closeAfterAll(await createSingleTestDatabase());

async function reportOfState(state: string): Promise<string[]> {
  const failing = `do $$ begin raise exception 'connection to the remote node worker1:5432 failed' using errcode = '${state}'; end $$`;
  const error: unknown = await database.pool.query(failing).catch((reason: unknown) => reason);
  return reportOf(error, 'distribute').lines;
}

test('a worker that the coordinator cannot reach is reported in one line, without a stack', async () => {
  for (const state of ['08000', '08001', '08003', '08004', '08006']) {
    expect(await reportOfState(state)).toEqual([
      `annals: the database of DATABASE_URL cannot reach another server: connection to the remote node worker1:5432 failed (${state})`,
    ]);
  }
});

test('an unexpected error is reported with its stack', async () => {
  for (const state of ['08P01', 'XX000']) expect((await reportOfState(state)).join('\n')).toContain('\n    at ');
});
