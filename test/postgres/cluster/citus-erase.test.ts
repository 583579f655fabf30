import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { moveTenant, urlsOfNodes } from '../../support/server/cluster.ts';
import { annals } from '../../support/server/command.ts';
import { createTestDatabaseForThisTest } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };

/** The tables and indexes whose files have the word, on all nodes, by port. */
async function filesWith(word: string, url: string): Promise<string[]> {
  const found: string[] = [];
  for (const node of urlsOfNodes(cluster, new URL(url).pathname.slice(1))) {
    const client = new pg.Client(node);
    await client.connect();
    await client.query('checkpoint');
    const { rows } = await client.query<{ relname: string }>(
      `select relname from pg_class
         where relkind in ('r', 't', 'i') and not relisshared
           and position($1::bytea in pg_read_binary_file(pg_relation_filepath(oid), 0, 100000000, true)) > 0`,
      [Buffer.from(word)],
    );
    found.push(...rows.map(({ relname }) => `${new URL(node).port} ${relname}`));
    await client.end();
  }
  return found;
}

test('annals erase --vacuum leaves nothing in the files of the worker that a tenant has just left either', async () => {
  const { url, db, pool } = await createTestDatabaseForThisTest();
  const tenant = 'erased';
  await createTenant(db, tenant);
  const now = Date.now();
  const changes = Array.from({ length: 300 }, (_none, i) => changeOf({ at: now - i, entityId: 'canary-id' }));
  await createRecorder(db, tenant, () => now)(changes);
  await pool.query('analyze');
  const from = await moveTenant(cluster, pool, tenant);
  const before = await filesWith('canary-id', url);
  // Its statistics have the id as well.
  expect(before).toContain(`${from.port} pg_statistic`);
  const environment = { DATABASE_URL: url, ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') };
  const of = ['--tenant', tenant, '--entity', 'order', '--entity-id', 'canary-id', '--reason', 'law'];
  expect(await annals(['erase', ...of, '--yes', '--vacuum'], environment)).toMatchObject({ code: 0 });
  expect(await filesWith('canary-id', url)).toEqual([]);
});

/** The files of the shards of a table, on all nodes. */
async function shardFiles(table: string, url: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const node of urlsOfNodes(cluster, new URL(url).pathname.slice(1))) {
    const client = new pg.Client(node);
    await client.connect();
    await client.query('set citus.override_table_visibility = off');
    const { rows } = await client.query<{ name: string; file: string }>(
      `select relname as name, pg_relation_filepath(oid) as file from pg_class where relkind = 'r' and relname ~ $1`,
      [`^${table}_[0-9]+$`],
    );
    for (const { name, file } of rows) found.set(name, file);
    await client.end();
  }
  return found;
}

test('annals erase --vacuum rewrites the shards that have the tenant, and no other', async () => {
  const { url, db, pool } = await createTestDatabaseForThisTest();
  const tenant = 'erased';
  await createTenant(db, tenant);
  await createRecorder(db, tenant, Date.now)([changeOf({ at: Date.now(), actor: 'Canary' })]);
  const { rows } = await pool.query<{ shard: string }>(
    `select shard_name('change_actor', get_shard_id_for_distribution_column('change_actor', $1::text)) as shard`,
    [tenant],
  );
  const before = await shardFiles('change_actor', url);
  const environment = { DATABASE_URL: url, ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') };
  const of = ['--tenant', tenant, '--actor', 'Canary', '--reason', 'law'];
  expect(await annals(['erase', ...of, '--yes', '--vacuum'], environment)).toMatchObject({ code: 0 });
  const after = await shardFiles('change_actor', url);
  const rewritten = [...after].filter(([shard, file]) => before.get(shard) !== file).map(([shard]) => shard);
  expect(before.size).toBeGreaterThan(1);
  expect(rewritten).toEqual(rows.map(({ shard }) => shard));
});
