import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { doWork } from '../../../src/core/fairness/work.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createTenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { trials } from '../../support/oracle/trials.ts';
import { annals } from '../../support/server/command.ts';
import {
  createEmptyTestDatabase,
  createTestDatabase,
  createTestDatabaseForThisTest,
} from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';
import { type PoolMode, startPooler } from '../../support/server/pgbouncer.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const json = { 'content-type': 'application/json' };

async function databaseBehindPooler(create = createTestDatabase, mode?: PoolMode) {
  const database = await createTestDatabaseForThisTest(create);
  return { ...database, url: await startPooler(database.url, mode) };
}

test.each(['transaction', 'session'] as const)(
  'behind pgbouncer in %s mode many calls at once are answered as without it',
  { timeout: 180_000 },
  async (mode) => {
    const database = await databaseBehindPooler(createEmptyTestDatabase, mode);
    const pool = createPool(database.url, { maximum: 2 });
    onTestFinished(() => pool.end());
    await migrate(pool);
    const server = await startTestServer({ database });
    onTestFinished(() => server.close());
    const token = await server.token(tenant);
    const call = async (method: string, path: string, body?: string) => {
      const response = await server.call(path, {
        method,
        token,
        headers: json,
        ...(body === undefined ? {} : { body }),
      });
      return { status: response.status, text: await response.text() };
    };
    const types = `/schema/${tenant}/custom-entities`;
    expect((await call('POST', types, '{"id":"NOTE","name":{"en":"Note"}}')).status).toBe(201);
    const made = await Promise.all(
      Array.from({ length: 40 }, (_, n) => call('POST', `${types}/NOTE/instances`, JSON.stringify({ n }))),
    );
    expect(made.map(({ status }) => status)).toEqual(made.map(() => 201));

    const id = JSON.parse(made[0]?.text ?? '{}').id;
    const history = `/changelog/${tenant}/changelogs?q=`;
    const paths = [
      history,
      `${history}type:create&page=2`,
      `${history}${encodeURIComponent(`entity:NOTE entityId:${id}`)}`,
      `${history}${encodeURIComponent('entity:~^N type:(create, update)')}`,
      `${types}/NOTE/instances?sort=n:DESC&pageSize=10`,
      `/configuration/${tenant}/configurations`,
      `/ai-service/${tenant}/jobs`,
    ];
    for (let round = 0; round < trials(1); round++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => paths.map((path) => call('GET', path))).flat(),
      );
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    }
    const { totalElements } = JSON.parse((await call('GET', `${history}entity:NOTE`)).text);
    expect(totalElements).toBe(40);
  },
);

test('a URL that does not say that it leads to a pooler ends the command with what to write', async () => {
  const url = new URL((await databaseBehindPooler()).url);
  expect(url.searchParams.get('pooler')).toBe('transaction');
  url.search = '';
  const ANNALS_SECRET_KEY = randomBytes(32).toString('base64');
  expect(await annals(['tenant', 'list'], { DATABASE_URL: url.href, ANNALS_SECRET_KEY })).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'annals: the database of DATABASE_URL is behind a pooler: put ?pooler=transaction at the end of DATABASE_URL ' +
      '(unsupported startup parameter: options)\n',
  });
});

test('behind a pooler a statement is cancelled where it runs, and no other one', async () => {
  const { url, pool: direct } = await databaseBehindPooler();
  const pool = createTenantPool(url);
  onTestFinished(() => pool.end());
  const running = async () =>
    (await direct.query(`select from pg_stat_activity where state = 'active' and query like '%pg_sleep(' || '60)%'`))
      .rowCount;
  const stop = new AbortController();
  const sleeping = (signal?: AbortSignal) =>
    doWork({ tenant, ...(signal === undefined ? {} : { signal }) }, () => pool.query({ text: 'select pg_sleep(60)' }));
  const others = new AbortController();
  const bystander = sleeping(others.signal).catch((error: unknown) => error);
  const stopped = sleeping(stop.signal);
  await eventually(running).toBe(2);
  stop.abort(new Error('the client has gone'));
  await expect(stopped).rejects.toThrow('the client has gone');
  await eventually(running).toBe(1);
  expect((await doWork({ tenant }, () => pool.query<{ n: number }>({ text: 'select 1 as n' }))).rows).toEqual([
    { n: 1 },
  ]);
  expect(await running()).toBe(1);
  others.abort(new Error('this one too'));
  await bystander;
  await eventually(running).toBe(0);
});
