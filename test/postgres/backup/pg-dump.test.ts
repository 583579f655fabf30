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
import { plantCanaries } from '../../support/server/planted-canaries.ts';
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
  const words = ['Canary Jane', 'canary-4711'];
  const [jane = '', id = ''] = words;
  const dumpedWith = async () => columnsWith(await server.run('pg_dump', [server.url]), words);
  const canary = changeOf({
    ...{ at: Date.now(), entityId: id, name: `Cana ${id}`, actor: jane },
    ...{ context: `{"of":"${id}"}`, paths: `{"note":{"before":"of ${jane}","after":"of ${id}"}}` },
  });
  const related = changeOf({ at: Date.now(), entityId: 'o2', related: [{ entity: 'order', entityId: id }] });
  await createRecorder(source.db, 'acme', Date.now)([canary, related]);
  const planted = await plantCanaries(source.pool, 'acme', words);
  await source.pool.query(
    `insert into job (tenant, id, type, status, document, fields, input) values ('acme', 'export', 'EXPORT', 'success', '{}', '{}', '{}')`,
  );
  await source.pool.query(
    `insert into job_chunk (tenant, job, chunk, content, bytes) values ('acme', 'export', 0, $1, 1)`,
    [Buffer.from(words.join())],
  );
  const ofEntries = ['entity_id', 'name', 'related', 'paths', 'context'].map((column) => `change_entry.${column}`);
  const ofHistory = [...ofEntries, 'change_actor.name', 'change_delta.names', 'change_related.entity_id'];
  expect(await dumpedWith()).toEqual([...planted, ...ofHistory, 'job_chunk.content'].sort());
  for (const of of [
    ['--actor', jane],
    ['--entity', 'order', '--entity-id', id],
  ]) {
    const erase = ['erase', '--tenant', 'acme', ...of, '--reason', 'request', '--yes', '--vacuum'];
    expect(
      await annals(erase, { DATABASE_URL: server.url, ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64') }),
    ).toMatchObject({ code: 0 });
  }
  expect(await dumpedWith()).toEqual([]);
});

/** The columns of a dump in plain text that have one of these words, as a text or as bytes. */
function columnsWith(dump: string, words: readonly string[]): string[] {
  const sought = words.flatMap((word) => [word, Buffer.from(word).toString('hex')]);
  const tables = dump.matchAll(/^COPY public\.(\w+) \((.*)\) FROM stdin;\n((?:.*\n)*?)^\\\.$/gm);
  const found = [...tables].flatMap(([, table, columns = '', rows = '']) =>
    columns
      .split(', ')
      .filter((_column, place) =>
        rows.split('\n').some((row) => sought.some((word) => row.split('\t')[place]?.includes(word))),
      )
      .map((column) => `${table}.${column.replaceAll('"', '')}`),
  );
  // Nothing of it stands elsewhere, as in a default.
  expect(found.length > 0).toBe(sought.some((word) => dump.includes(word)));
  return found.sort();
}
