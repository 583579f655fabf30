import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { foldHistory } from '../../src/history/tallies/fold.ts';
import { buildHistoryIndexes } from '../../src/history/tallies/statistics.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { readPredecessors } from '../../src/postgres/schema/predecessors.ts';
import { createSingleTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { createReleaseDatabase, releaseData } from '../support/server/release.ts';
import { schemaText } from '../support/server/schema-text.ts';
import { startTestServer } from '../support/server/server.ts';

const tenant = 'acme';
const now = 1_741_000_000_000;

let old: TestDatabase;

afterEach(() => old.drop());

const history = `/changelog/${tenant}/changelogs`;
const all = 'occurredAt:>="2020-01-01T00:00:00Z"';
const spring = 'occurredAt:(>="2024-01-01T00:00:00Z" AND <"2024-06-01T00:00:00Z")';
const asked = (q: string, paging = '') => `${history}?q=${encodeURIComponent(q)}${paging}`;
const notes = `/schema/${tenant}/custom-entities/note/instances`;
const questions = [
  asked(all),
  asked(all, '&page=17&size=50'),
  asked(all, '&page=40&size=100'),
  asked(`entity:Order ${all}`, '&page=3'),
  asked(`actor:user-7@acme.example ${all}`),
  asked(`actor:user-1* type:(create, delete) ${all}`, '&page=5'),
  asked(`compoundLogicalQuery:((type:delete) OR (actor:user-3@acme.example)) ${all}`, '&page=2'),
  asked(`entity:Product entityId:id-20 ${all}`),
  asked(`related:elemMatch(entity:Customer entityId:id-3) ${all}`),
  asked(spring, '&page=2'),
  `/changelog/${tenant}/histogram?q=${encodeURIComponent(spring)}`,
  `/changelog/${tenant}/facets?field=type&q=${encodeURIComponent(spring)}`,
  `${notes}?sort=rank:ASC&pageSize=50`,
  `${notes}?sort=rank:DESC&pageNumber=2&pageSize=20`,
  `/ai-service/${tenant}/agentic/logs/requests`,
];

async function answersOf(database: TestDatabase): Promise<string[]> {
  const server = await startTestServer({ database, clock: { now: () => now } });
  try {
    const token = await server.token(tenant);
    const answers: string[] = [];
    for (const question of questions) {
      const response = await server.call(question, { token, ofInventedRows: true });
      answers.push(`${question} ${response.status} ${response.headers.get('x-total-count')} ${await response.text()}`);
    }
    return answers;
  } finally {
    await server.close();
  }
}

/** All tallies, with the names of their kinds and actors: their numbers are another database's own. */
async function talliesOf({ pool }: TestDatabase): Promise<unknown[]> {
  const { rows } = await pool.query(
    `select t.tenant, t.level, t.bucket, a.name, k.entity, k.type, k.related_entities, t.children, t.upto
       from change_tally t
       left join change_actor a on a.tenant = t.tenant and a.actor = t.actor
       left join change_kind k on k.tenant = t.tenant and k.kind = t.kind
       order by 1, 2, 3, 4, 5, 6, 7`,
  );
  return rows;
}

/** The data as this version records them: their deltas name the entries. */
function withSequences(data: string): string {
  return data.replaceAll(
    /(insert into change_delta \(tenant, )(ats, kinds, actors\)\s+select 'acme', )/g,
    '$1sequences, $2array_agg(sequence order by sequence), ',
  );
}

/** As so many processes do that start at the same moment. Returns the migrations that any of them ran. */
async function migrateAtOnce({ url }: TestDatabase, processes: number): Promise<string[]> {
  const pools = Array.from({ length: processes }, () => createPool(url, { maximum: 2 }));
  const ran = await Promise.all(pools.map((pool) => migrate(pool)));
  await Promise.all(pools.map((pool) => pool.end()));
  return ran.flat();
}

/** The queues of a release, and whether an upgrade leaves their schema: it does where others use it too. */
const queues = {
  '2a90738': { names: ['annals.export', '__pgboss__send-it'], left: false },
  c471d83: { names: ['annals.export', 'invoices'], left: true },
} as const;

/** Their schema stands beside ours. */
async function addQueues(pool: TestDatabase['pool'], names: readonly string[]): Promise<void> {
  await pool.query('create schema pgboss; create table pgboss.queue (name text)');
  await pool.query('insert into pgboss.queue select unnest($1::text[])', [names]);
}

interface Fresh {
  schema: string;
  answers: string[];
  tallies: unknown[];
}

/** What a fresh database with the same data has, answers and tallies. */
async function freshOne(): Promise<Fresh> {
  const fresh = await createSingleTestDatabase();
  try {
    const [data, later] = await releaseData();
    await fresh.pool.query(withSequences(data));
    await foldHistory(fresh.db, tenant);
    await fresh.pool.query(withSequences(later));
    await buildHistoryIndexes(fresh.db);
    const [schema, answers] = [await schemaText(fresh.pool), await answersOf(fresh)];
    await foldHistory(fresh.db, tenant);
    return { schema, answers, tallies: await talliesOf(fresh) };
  } finally {
    await fresh.drop();
  }
}

describe('a database that a release made', () => {
  let fresh: Fresh;

  beforeAll(async () => {
    fresh = await freshOne();
  });

  test.each([
    ['2a90738', 1],
    ['c471d83', 3],
  ] as const)(
    '%s: has the schema, the routines and the answers of a fresh one after an upgrade by %i at once; the schema of its queues goes unless others use it',
    async (release, processes) => {
      const [data, later] = await releaseData();
      old = await createReleaseDatabase(release);
      await old.pool.query(data);
      await old.pool.query(`select change_fold('${tenant}')`);
      await old.pool.query(later);
      const { names, left } = queues[release];
      await addQueues(old.pool, names);
      const ran = await migrateAtOnce(old, processes);
      const { rows: schemas } = await old.pool.query(`select to_regnamespace('pgboss') is not null as left`);
      expect(schemas).toEqual([{ left }]);
      const { rows } = await old.pool.query('select version from routine_set where replaced_at is null');
      // Releases had their routines in their migrations: version 0.
      expect(rows[0].version).toBeGreaterThan(0);
      expect(ran.filter((name) => name === '0014-change-folded.sql')).toHaveLength(1);
      expect(new Set(ran).size).toBe(ran.length);
      // What an upgrade leaves to the service, which builds it beside writers.
      await buildHistoryIndexes(old.db);
      expect(await schemaText(old.pool)).toBe(fresh.schema);
      const answers = await answersOf(old);
      expect(answers.map((answer) => answer.split(' ')[1])).toEqual(questions.map(() => '200'));
      for (const answer of answers) expect(answer).toMatch(/"(entityId|rank|messages|buckets|values)"/);
      expect(answers).toEqual(fresh.answers);
      await foldHistory(old.db, tenant);
      const tallies = await talliesOf(old);
      expect(tallies.length).toBeGreaterThan(3);
      expect(tallies).toEqual(fresh.tallies);
    },
  );
});

test('a database of an early form without change_folded gets it, and its withdrawn migrations are forgotten', async () => {
  old = await createReleaseDatabase('2a90738', (name, text) =>
    name.startsWith('0011') ? text.replace(/create table change_folded[^;]*;/, '') : text,
  );
  await old.pool.query(
    `insert into migration (number, name) values (9, '0009-record-entries.sql'), (15, '0015-record-entries.sql')`,
  );
  await old.pool.query(
    'create function change_scans(text[], bigint[], integer[]) returns integer language sql as $$ select 1 $$',
  );
  await old.pool.query('create function change_scans(text) returns integer language sql as $$ select 1 $$');
  await migrate(old.pool);
  expect(await schemaText(old.pool, { leaveOut: ['change_scans'] })).toContain('table change_folded');
  const { rows } = await old.pool.query(
    `select oid::regprocedure::text as kept from pg_proc where proname = 'change_scans'`,
  );
  expect(rows).toEqual([{ kept: 'change_scans(text)' }]);
  expect((await old.pool.query(`select from migration where name like '%record-entries%'`)).rowCount).toBe(1);
});

test('a stored checksum of a form that was committed counts as that of the file', async () => {
  old = await createSingleTestDatabase();
  const { migrations } = await readPredecessors();
  for (const checksum of migrations['0011-read-change-history.sql'] ?? []) {
    await old.pool.query('update migration set checksum = $1 where number = 11', [checksum]);
    expect(await migrate(old.pool)).toEqual([]);
  }
  expect(migrations['0011-read-change-history.sql']?.length).toBeGreaterThan(10);
  await old.pool.query(`update migration set checksum = 'another' where number = 11`);
  await expect(migrate(old.pool)).rejects.toThrow('The migration 0011-read-change-history.sql was edited');
});

test.each([
  [
    'a column less',
    '0003-change-history.sql',
    '  schema_version text collate "C",\n',
    '',
    'The table change_entry of the database is not as 0008-jobs.sql makes it',
  ],
  [
    'another primary key',
    '0011-read-change-history.sql',
    '(tenant, level, bucket, actor, kind);',
    '(tenant, level, actor, bucket, kind);',
    'The table change_tally of the database is not as 0011-read-change-history.sql makes it',
  ],
  [
    'an index less',
    '0003-change-history.sql',
    'create index change_related_document on change_related (tenant, document, at, sequence);',
    '',
    'The table change_related of the database is not as 0003-change-history.sql makes it',
  ],
  [
    'a column more',
    '0004-configuration.sql',
    '  key         text',
    '  owner text not null,\n  key         text',
    'The table configuration of the database is not as 0004-configuration.sql makes it',
  ],
])(
  'a database of an edited migration is refused, and unchanged: %s',
  async (_title, file, text, replacement, message) => {
    let edited = 0;
    old = await createReleaseDatabase('2a90738', (name, sql) => {
      // with a column less, what reads it cannot be there either
      if (name !== file) return name > file && replacement === '' && name > '0010' ? undefined : sql;
      edited += 1;
      expect(sql).toContain(text);
      return sql.replace(text, replacement);
    });
    expect(edited).toBe(1);
    const before = await schemaText(old.pool);
    await expect(migrate(old.pool)).rejects.toThrow(message);
    expect(await schemaText(old.pool)).toBe(before);
  },
);
