import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { backupOf, restored } from '../../support/server/backups.ts';
import { annals } from '../../support/server/command.ts';
import { recordChangesOf, resumedExport, wholeExport } from '../../support/server/cut-exports.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { temporaryFolder } from '../../support/server/package-copy.ts';
import { startPackagedPostgres } from '../../support/server/packaged-postgres.ts';
import { schemaText } from '../../support/server/schema-text.ts';

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createEmptyTestDatabase();
  onTestFinished(database.drop);
  return database;
}

const highestId = async ({ pool }: TestDatabase) =>
  Number((await pool.query('select pg_current_xact_id()::text as id')).rows[0].id);

test('pg_dump and annals restore move a database of an older server to one of lower transaction ids, and a dump has nothing that was erased', async () => {
  const server = await startPackagedPostgres({ epoch: 7 });
  const pool = createPool(server.url);
  onTestFinished(() => pool.end());
  const source: TestDatabase = { url: server.url, pool, db: createDatabase(pool), drop: async () => {} };
  await migrate(source.pool);
  await createTenant(source.db, 'acme');
  await recordChangesOf(source, 'old', 40);
  const dump = join(await temporaryFolder(), 'annals.dump');
  await server.run('pg_dump', ['--format=custom', `--file=${dump}`, server.url]);
  const [dumped, backedUp] = [await emptyDatabase(), await emptyDatabase()];
  await server.run('pg_restore', ['--no-owner', `--dbname=${dumped.url}`, dump]);
  await restored(backedUp, await backupOf(source));
  const regexes = new RegexMatcherPool();
  onTestFinished(() => regexes.close());
  const whole = await wholeExport(source, regexes);
  for (const target of [dumped, backedUp]) {
    expect(await highestId(target)).toBeLessThan(await highestId(source));
    expect(await migrate(target.pool)).toEqual([]);
    expect(await schemaText(target.pool)).toBe(await schemaText(source.pool));
    expect(await wholeExport(target, regexes)).toBe(whole);
    await recordChangesOf(target, 'new', 5);
    const then = await wholeExport(target, regexes);
    expect(then.length).toBeGreaterThan(whole.length);
    expect(await resumedExport(target, regexes)).toBe(then);
  }
  // Statistics of values are no part of a dump; what each table has is.
  const canaries = (text: string) => new Set(text.match(/canary-\w+/g));
  const canary = changeOf({
    at: Date.now(),
    entityId: 'canary-id',
    actor: 'canary-actor',
    paths: '{"note":{"after":"canary-value"}}',
  });
  await createRecorder(source.db, 'acme', Date.now)([canary]);
  expect(canaries(await server.run('pg_dump', [server.url]))).toEqual(
    new Set(['canary-actor', 'canary-id', 'canary-value']),
  );
  for (const of of [
    ['--actor', 'canary-actor'],
    ['--entity', 'order', '--entity-id', 'canary-id'],
  ]) {
    const erase = ['erase', '--tenant', 'acme', ...of, '--reason', 'request', '--yes', '--vacuum'];
    expect(
      await annals(erase, { DATABASE_URL: server.url, ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64') }),
    ).toMatchObject({ code: 0 });
  }
  expect(canaries(await server.run('pg_dump', [server.url]))).toEqual(new Set());
});
