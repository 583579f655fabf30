import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { tenantTables } from '../../src/postgres/tenants/delete-tenant.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals } from '../support/server/command.ts';
import { createTestDatabaseForThisTest, type TestDatabase } from '../support/server/database.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const ANNALS_SECRET_KEY = randomBytes(32).toString('base64');
const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY, LOG_LEVEL: 'silent' };

const query = async (text: string, values: unknown[] = [], on: TestDatabase = server.database) =>
  (await on.pool.query(text, values)).rows;

async function listed(name: string) {
  const { code, stdout } = await annals(['tenant', 'list'], environment);
  expect(code).toBe(0);
  const tenants: { name: string }[] = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  return tenants.find((tenant) => tenant.name === name);
}

/** The rows of a tenant in each table that has any. */
async function rowsOf(tenant: string, on = server.database): Promise<Record<string, number>> {
  const counts = (await tenantTables(on.db)).map(
    ({ name }) => `select '${name}' as name, count(*) from ${name} where tenant = $1`,
  );
  const rows = await query(`select * from (${counts.join(' union all ')}) c where count > 0`, [tenant], on);
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

// What a column needs whose values are checked. A new table with such columns is added here.
const checked: Record<string, string> = {
  'job.type': "'EXPORT'",
  'job.status': "'success'",
  'agent_turn.state': "'running'",
  'agent_turn.exchange': 'null',
  'budget.limit_tokens': '1',
  'change_kind.type': "'create'",
  'change_recorder.way': "'recorder'",
  'change_rejected.way': "'recorder'",
  'completion_request.state': "'running'",
  'usage_count.measure': "'entries'",
  'change_retention.horizon': '0',
  'configuration.sealed': 'null',
  'configuration.value': "'1'",
};
const ofType: Record<string, string> = {
  text: "'x'",
  bigint: '1',
  integer: '1',
  numeric: '1',
  smallint: '1',
  boolean: 'true',
  json: `'{}'`,
  jsonb: `'{}'`,
  bytea: String.raw`'\x00'`,
  uuid: "'00000000-0000-4000-8000-000000000000'",
  'timestamp with time zone': 'now()',
  'double precision': '1',
  ARRAY: "'{}'",
};

/** Gives a tenant a row in every table that has a tenant, whatever tables there are. */
async function fill(tenant: string, on: TestDatabase): Promise<void> {
  const needed = await query(
    `select table_name as table, column_name as name, data_type as type from information_schema.columns
       where table_schema = current_schema() and is_identity = 'NO'
         and (is_nullable = 'NO' and column_default is null or table_name || '.' || column_name = any($1))`,
    [Object.keys(checked)],
    on,
  );
  const inserts = (await tenantTables(on.db)).toReversed().map(({ name }) => {
    const columns = needed.filter(({ table }) => table === name);
    const values = columns.map((column) =>
      column.name === 'tenant' ? `'${tenant}'` : (checked[`${name}.${column.name}`] ?? ofType[column.type]),
    );
    expect([name, values]).toEqual([name, values.map(() => expect.any(String))]);
    return `insert into ${name} (${columns.map((column) => column.name)}) values (${values}) on conflict do nothing`;
  });
  await on.pool.query(inserts.join(';'));
}

test('list tells of each tenant when it was made, and its entries with the oldest and the newest', async () => {
  await server.createTenant('empty');
  expect(await listed('empty')).toEqual({
    name: 'empty',
    createdAt: expect.stringMatching(/Z$/),
    entries: 0,
    oldestEntry: null,
    newestEntry: null,
  });
  await server.createTenant('shop');
  const lines = [3, 1, 2].map((day) => {
    const at = `2026-09-0${day}T12:00:00.000Z`;
    return JSON.stringify({ op: 'insert', entity: 'order', entityId: `${day}`, at, after: { day } });
  });
  await annals(['import', '--tenant', 'shop', '-'], environment, lines.join('\n'));
  expect(await listed('shop')).toMatchObject({
    entries: 3,
    oldestEntry: '2026-09-01T12:00:00.000Z',
    newestEntry: '2026-09-03T12:00:00.000Z',
  });
  await query("insert into change_retention (tenant, keep_days, horizon) values ('shop', 100000, $1)", [
    Date.UTC(2026, 8, 2),
  ]);
  expect(await listed('shop')).toMatchObject({ entries: 2, oldestEntry: '2026-09-02T12:00:00.000Z' });
});

describe('delete', () => {
  test('needs --yes, and without it deletes nothing', async () => {
    await server.createTenant('careful');
    const { code, stdout, stderr } = await annals(['tenant', 'delete', 'careful'], environment);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('removes all data of careful for good; add --yes to confirm');
    expect(await rowsOf('careful')).toEqual({ tenant: 1 });
  });

  test('leaves no row in any table that has a tenant, and nothing of another tenant away', async () => {
    // Without a service, which would fold and expire what is made up here.
    const on = await createTestDatabaseForThisTest();
    const command = ['tenant', 'delete', 'doomed', '--yes'];
    const remove = () => annals(command, { ...environment, DATABASE_URL: on.url });
    const tables = (await tenantTables(on.db)).map(({ name }) => name);
    for (const tenant of ['doomed', 'kept']) {
      await createTenant(on.db, tenant);
      await fill(tenant, on);
    }
    const everyTable = Object.fromEntries(tables.map((name) => [name, 1]));
    expect(await rowsOf('doomed', on)).toEqual(everyTable);
    const deleted = await remove();
    expect({ ...deleted, stdout: JSON.parse(deleted.stdout) }).toEqual({
      code: 0,
      stderr: '',
      stdout: { tenant: 'doomed', deleted: true, rows: tables.length },
    });
    expect(await rowsOf('doomed', on)).toEqual({});
    expect(await rowsOf('kept', on)).toEqual(everyTable);
    expect((await remove()).stdout).toBe('{"tenant":"doomed","deleted":false,"rows":0}\n');
  });

  test('ends what its clients do while the service runs, and the name is free again', async () => {
    const token = await server.token('busy');
    const statuses: number[] = [];
    let isOver = false;
    const write = async () => {
      for (let number = 0; !isOver; number += 1) {
        const json = [{ key: `k${number}-${statuses.length}`, value: number }];
        statuses.push((await server.call('/configuration/busy/configurations', { token, json })).status);
        await sleep(100);
      }
    };
    const writers = [write(), write(), write()];
    await expect.poll(() => statuses.filter((status) => status === 201).length).toBeGreaterThan(5);
    const { code } = await annals(['tenant', 'delete', 'busy', '--yes'], environment);
    expect(code).toBe(0);
    await expect.poll(() => statuses.at(-1)).toBe(401);
    isOver = true;
    await Promise.all(writers);
    expect(await rowsOf('busy')).toEqual({});
    const newToken = await server.token('busy');
    const path = '/changelog/busy/changelogs';
    const history = await (await server.call(path, { token: newToken })).json();
    expect(history).toMatchObject({ totalElements: 0, items: [] });
    expect((await server.call(path, { token })).status).toBe(401);
  });
});
