import { expect, onTestFinished, test } from 'vitest';
import { olderSnapshotsEnded } from '../../../src/history/erasure/vacuum-tables.ts';
import { createTestDatabase } from '../../support/server/database.ts';

test('snapshots of this database and transactions of any are waited for, and named on timeout', async () => {
  const [database, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  const [reader, writer] = await Promise.all([database.pool.connect(), other.pool.connect()]);
  onTestFinished(async () => {
    for (const client of [reader, writer]) client.release(true);
    await Promise.all([database.drop(), other.drop()]);
  });
  const options = { slots: false, wait: 200 };

  await reader.query('begin isolation level repeatable read; select');
  await database.pool.query('select pg_current_xact_id()');
  await expect(olderSnapshotsEnded(database.db, options)).rejects.toThrow(
    /^the connection \d+ of annals test still sees/,
  );
  await reader.query('commit');
  await writer.query('begin; select pg_current_xact_id()');
  await expect(olderSnapshotsEnded(database.db, options)).rejects.toThrow(
    /^the connection \d+ of annals test still sees/,
  );
  await reader.query('begin isolation level repeatable read; select');
  const ended = olderSnapshotsEnded(database.db, { slots: true, wait: 60_000 });
  await writer.query('commit');
  await reader.query('commit');
  await ended;
});
