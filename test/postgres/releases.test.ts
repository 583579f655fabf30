import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { readPackageSchema } from '../../src/postgres/schema/read-schema.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { matches } from '../support/oracle/query-evaluator.ts';
import { altered, backupOf, relationsOf, restored, rowsOfTables } from '../support/server/backups.ts';
import {
  createEmptyTestDatabase,
  createSingleTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../support/server/database.ts';
import { entriesOf } from '../support/server/entries.ts';
import { changeOf } from '../support/server/history.ts';
import { expectDense } from '../support/server/positions.ts';
import { createReleaseDatabase } from '../support/server/release.ts';
import { schemaText } from '../support/server/schema-text.ts';
import { startTestServer } from '../support/server/server.ts';
import { recordStatements } from '../support/server/statements.ts';

const tenant = 'acme';
const former = 'last-before-baseline';
const now = Date.UTC(2026, 10, 29, 12);
const since = 'occurredAt:>="2020-01-01T00:00:00Z"';
const queries = [
  '',
  'entity:Order type:(create, delete)',
  'actor:user-3@acme.example entity:Order entityId:id-20',
  'path:items.2.quantity',
  'path:status',
  'change:elemMatch(path:items.1.quantity after:4)',
  'related:elemMatch(entity:Customer entityId:c-3)',
].map((q) => `${q} ${since}`.trim());

/** As so many processes do that start at the same moment. Returns the migrations that they ran. */
async function migrateAtOnce({ url }: TestDatabase, processes: number): Promise<string[]> {
  const pools = Array.from({ length: processes }, () => createPool(url, { maximum: 2 }));
  const ran = await Promise.all(pools.map((pool) => migrate(pool)));
  await Promise.all(pools.map((pool) => pool.end()));
  return ran.flat();
}

async function ledgerOf({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>('select name from migration order by number');
  return rows.map(({ name }) => name);
}

/** The rows of what the baseline has as well. */
async function keptRows(database: TestDatabase): Promise<Record<string, string>> {
  const { change_path_backlog: _paths, change_position_backlog: _positions, ...kept } = await rowsOfTables(database);
  return kept;
}

/** Starts a service, which answers as an evaluator that reads all entries, and ends it. */
async function expectAnswers(database: TestDatabase): Promise<void> {
  const entries = (await entriesOf(database)).map((entry) => ({
    ...entry,
    at: Number(entry.at),
    context: entry.context ?? '{}',
    related: JSON.parse(entry.related ?? '[]'),
    paths: JSON.stringify(entry.paths),
  }));
  const server = await startTestServer({ database, clock: { now: () => now } });
  try {
    const token = await server.token(tenant);
    for (const q of queries) {
      const query = parseQuery(q, changelogDialect);
      const expected = entries.filter((entry) => matches(query, entry, now)).toReversed();
      const response = await server.call(`/changelog/${tenant}/changelogs?size=50&q=${encodeURIComponent(q)}`, {
        token,
      });
      const { items, totalElements } = (await response.json()) as {
        items: { entityId: string }[];
        totalElements: number;
      };
      expect({ q, total: totalElements, ids: items.map(({ entityId }) => entityId) }).toEqual({
        q,
        total: expected.length,
        ids: expected.slice(0, 50).map(({ entityId }) => entityId),
      });
      expect(totalElements).toBeGreaterThan(0);
    }
    const feed = await server.call(`/changelog/${tenant}/feed?after=start`, { token });
    expect(await feed.json()).toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ position: 1 })]),
    });
  } finally {
    await server.close();
  }
}

describe.each([
  [former, 3],
  ['baseline', 1],
])('a database of %s', (release, processes) => {
  test(`keeps its rows and gets the schema of a fresh one from ${processes} processes, is read, recorded in and opened again`, async () => {
    const database = await createReleaseDatabase(release);
    onTestFinished(database.drop);
    const before = await keptRows(database);
    const ran = await migrateAtOnce(database, processes);
    const { migrations } = await readPackageSchema();
    const [baseline, ...later] = migrations.map(({ name }) => name);
    expect(ran.sort()).toEqual(later);
    expect(await ledgerOf(database)).toEqual([baseline, ...later]);
    expect(await rowsOfTables(database)).toEqual(before);
    const fresh = await createTestDatabaseForThisTest(createSingleTestDatabase);
    // A service makes these after its start.
    const leaveOut = [
      'entry_short_id',
      'entry_long_id',
      'entry_paths',
      'entry_terms',
      'instance_narrow_values',
      'instance_wide',
    ];
    expect(await schemaText(database.pool, { leaveOut })).toBe(await schemaText(fresh.pool, { leaveOut }));
    expect(await migrate(database.pool)).toEqual([]);
    await expectAnswers(database);
    const record = createRecorder(database.db, tenant, () => now);
    await record([changeOf({ at: now, entity: 'Order', entityId: 'new', paths: '{"status":{"after":"NEW"}}' })]);
    await expectAnswers(database);
    await expectDense(database, tenant);
  });
});

describe('a database whose last version left something unfinished', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createReleaseDatabase(former);
  });
  afterAll(() => database.drop());

  test.each([
    [
      'changes without numbers of paths',
      `insert into change_path_backlog (tenant, at) values ('acme', 1)`,
      'delete from change_path_backlog',
    ],
    [
      'changes without positions',
      `update change_position_backlog set until = until + 1 where tenant = 'acme'`,
      'update change_position_backlog set until = filled',
    ],
    [
      'changes without positions',
      `update change_position_backlog set until = null where tenant = 'globex'`,
      'update change_position_backlog set until = filled',
    ],
    [
      'changes without a sequence',
      `insert into change_delta (tenant, ats, kinds, actors, sequences) values ('acme', '{1}', '{1}', '{1}', '{}')`,
      `delete from change_delta where sequences = '{}'`,
    ],
    [
      'provider tokens that are not sealed',
      `insert into configuration (tenant, key, value, version) values ('acme', 'openAiApiToken', '"sk"', 1)`,
      `delete from configuration where key = 'openAiApiToken'`,
    ],
    [
      'chats under way without a log',
      `insert into agent_session (tenant, id) values ('acme', 's'); insert into agent_turn
         (tenant, session_id, position, request_id, agent_id, state, expires_at) values ('acme', 's', 1, 'r', 'a', 'running', now())`,
      'delete from agent_turn; delete from agent_session',
    ],
    [
      'chats without a place in their session',
      `insert into job (tenant, id, type, status, document, fields, input)
         values ('acme', 'chat', 'AGENT_CHAT', 'in_progress', '{}', '{}', '{}')`,
      `delete from job where id = 'chat'`,
    ],
    ...[
      ['change_entry_id', 'change_entry'],
      ['change_entry_kind', 'change_entry'],
      ['custom_instance_values', 'custom_instance'],
    ].map(([index, table]) => [
      'indexes that are not replaced',
      `create index ${index} on ${table} (tenant)`,
      `drop index ${index}`,
    ]),
  ])(
    '%s: is refused as long as there are any, and other processes keep running',
    async (what = '', begin = '', finish = '') => {
      await database.pool.query(begin);
      const before = [await schemaText(database.pool), await ledgerOf(database), await rowsOfTables(database)];
      const backup = await backupOf(database);
      const statements = recordStatements(database.pool);
      await expect(migrate(database.pool)).rejects.toThrow(
        new RegExp(
          `The database has ${what} .*this returns no row: select .* Build Annals at commit [0-9a-f]{12}, start it`,
        ),
      );
      expect(statements.filter(({ text }) => text.includes('schema_change (newest'))).toEqual([]);
      expect([await schemaText(database.pool), await ledgerOf(database), await rowsOfTables(database)]).toEqual(before);
      // A backup has the rows, and no index.
      const target = await createTestDatabaseForThisTest(createEmptyTestDatabase);
      if (!what.startsWith('indexes')) {
        await expect(restored(target, backup)).rejects.toThrow(
          new RegExp(`The backup has ${what} .*at commit [0-9a-f]{12}, restore the backup with it, start it`),
        );
        expect(await relationsOf(target)).toEqual([]);
      }
      await database.pool.query(finish);
    },
  );

  test('is opened once it is finished', async () => {
    expect(await migrate(database.pool)).toEqual([
      '0002-change-input.sql',
      '0003-who-exactly.sql',
      '0004-fields-and-reasons.sql',
      '0005-console-sessions.sql',
      '0006-made-credentials.sql',
      '0007-access-grants.sql',
      '0008-end-users.sql',
      '0009-hour-cache-writes.sql',
    ]);
    expect((await ledgerOf(database))[0]).toBe('0001-baseline.sql');
  });
});

test('a database or a backup of an earlier migration is refused, and the error names the commit in between', async () => {
  const database = await createReleaseDatabase(former);
  onTestFinished(database.drop);
  const backup = await backupOf(database);
  const [last = ''] = (await ledgerOf(database)).slice(-1);
  const older = last.replace('0146', '0100');
  const target = await createTestDatabaseForThisTest(createEmptyTestDatabase);
  await expect(restored(target, altered(backup, last, older))).rejects.toThrow(
    new RegExp(
      `The backup is at ${older}, .* ${last} or later. Build Annals at commit [0-9a-f]{12}, restore the backup with it`,
    ),
  );
  expect(await relationsOf(target)).toEqual([]);
  await restored(target, backup);
  expect(await ledgerOf(target)).toEqual((await readPackageSchema()).migrations.map(({ name }) => name));
  expect(await rowsOfTables(target)).toEqual(await keptRows(database));

  await database.pool.query('delete from migration where number = (select max(number) from migration)');
  const [previous = ''] = (await ledgerOf(database)).slice(-1);
  const before = await schemaText(database.pool);
  await expect(migrate(database.pool)).rejects.toThrow(
    new RegExp(`The database is at ${previous}, .* ${last} or later. Build Annals at commit [0-9a-f]{12}, start it`),
  );
  await database.pool.query('alter table migration drop column checksum');
  await expect(migrate(database.pool)).rejects.toThrow(`The database is at ${previous}`);
  expect((await schemaText(database.pool)).replace(/\n {2}checksum text/, '')).toBe(
    before.replace(/\n {2}checksum text/, ''),
  );
});

/** Of each migration, once it is on the main branch. A line is added, and none is ever changed. */
const checksums: Readonly<Record<string, string>> = {
  '0001-baseline.sql': 'a0b737354095dcace74ed63a73bbea881b71587c3399c9edb1f36778069dea40',
  '0002-change-input.sql': '60a45a6818c6b79d693f8fc19b85640df755f9a949d77cf27e14977366ea7339',
  '0003-who-exactly.sql': '58980710b23331d24bcd0b39f535f82043004b43ed57b19c73570d2089bd6900',
  '0004-fields-and-reasons.sql': 'a1295ebff45a848399018f7a32648a1cb8a205345184ae8ac55b0c5dc7c0b7c6',
  '0005-console-sessions.sql': '16c69f81c616dc447819b82053750d6a3371cc9d3927009aa065a23bcbfc0620',
  '0006-made-credentials.sql': '25d813c8416db0eb4241f3dc5d89ee4245dc82c471d747dd699a0b1972e5ad73',
  '0007-access-grants.sql': 'f0e59325f588de9d9f0677ffdbf4516dcb498278b2bbfcd4f59b4a423ed7502a',
  '0008-end-users.sql': 'b13ab8ca9b4cdda48c9a35bfa5bc9624542616bdb9f6fbf3cb1fbe12bf0ab19d',
  '0009-hour-cache-writes.sql': '4e52652f8e5b9fcdf26cb170f6367104d0b2f9835a586819a5d87371465e9cb0',
};

test('migrations are never edited', async () => {
  const { migrations } = await readPackageSchema();
  expect(Object.fromEntries(migrations.map(({ name, checksum }) => [name, checksum]))).toEqual(checksums);
});
