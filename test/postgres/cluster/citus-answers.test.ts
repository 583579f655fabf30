import { expect, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { scopes } from '../../../src/http/scopes.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';
import { distribute } from '../../../src/postgres/migrate/distribute.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { placementOf } from '../../support/server/cluster.ts';
import { changesOf, now } from '../../support/server/cluster-changes.ts';
import { makeDataFolder, removeDataFolder } from '../../support/server/data-folder.ts';
import type { TestDatabase } from '../../support/server/database.ts';
import { routinesOn } from '../../support/server/routines-on.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const tenants = ['alpha', 'beta', 'gamma'];
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
for (const tenant of tenants) await server.createTenant(tenant);

const queries = [
  '',
  'entity:e1',
  'actor:a3',
  'entity:e1 actor:(a1, a2)',
  'entityId:d7',
  'entity:e2 entityId:d*',
  'related.entityId:y3',
  'related:elemMatch(entity:x entityId:y3)',
  'type:update',
  'compoundLogicalQuery:((entity:e1) OR (actor:a5))',
  'compoundLogicalQuery:((entityId:d3) OR (type:delete actor:a2))',
  'actor:~^a[1-3]$',
  'entity:e1 entityId:~7$',
  'occurredAt:<"2026-09-13T00:00:00Z"',
  'entity:none',
  'actorId:u2',
  'actorId:~[13]$ onBehalfOf:C*',
  'onBehalfOfId:missing type:update',
  'correlationId:c17',
  'correlationId:(c17, c18) entity:e1',
  'context.ip:10.0.0.3',
  'context.ip:~3$',
  'compoundLogicalQuery:((correlationId:c17) OR (context.ip:10.0.0.1 actorId:u1))',
  'entity:* entityId:*4*',
];

/** The answers to a fixed list of calls, without generated ids and cursors. */
async function answersOf(on: TestServer, tenant: string): Promise<string[]> {
  const token = await on.token(tenant, { scope: scopes.join(' ') });
  const record = createRecorder(on.context.db, tenant, () => now);
  // So many that facets count by tallies.
  for (let from = 0; from < 4_000; from += 2_000) await record(changesOf(tenant, from, 2_000));
  await foldHistory(on.context.db, tenant);
  await record(changesOf(tenant, 4_000, 200));
  const answers: string[] = [];
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const init = { token, method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await on.call(path, init);
    answers.push(`${method} ${path} ${response.status} ${withoutGenerated(await response.text())}`);
  };
  for (const query of queries) {
    const q = `q=${encodeURIComponent(query)}`;
    const history = `/changelog/${tenant}`;
    for (const page of ['', '&page=3&size=7', '&size=100', '&page=40&size=20']) {
      await call('GET', `${history}/changelogs?${q}${page}`);
    }
    await call('GET', `${history}/histogram?${q}`);
    for (const field of ['entity', 'type', 'actor', 'actorId', 'onBehalfOf', 'context.ip'])
      await call('GET', `${history}/facets?field=${field}&${q}`);
  }
  await call('GET', `/changelog/${tenant}/actors?pageSize=3`);
  await call('GET', `/changelog/${tenant}/actors?prefix=A2`);
  const types = `/schema/${tenant}/custom-entities`;
  await call('POST', types, { id: 'NOTE', name: { en: 'Note' } });
  for (let n = 0; n < 6; n += 1) await call('POST', `${types}/NOTE/instances`, { id: `i${n}`, n, text: `x${n}` });
  await call('GET', `${types}/NOTE/instances?sort=n:DESC&pageSize=3`);
  await call('GET', `${types}/NOTE/instances?q=${encodeURIComponent('n:>2')}`);
  await call('DELETE', `${types}/NOTE/instances/i2`);
  await call('GET', `${types}/NOTE/instances/i2`);
  await call('POST', `/configuration/${tenant}/configurations`, [{ key: 'a', value: 1 }]);
  await call('GET', `/configuration/${tenant}/configurations`);
  await call('GET', `/changelog/${tenant}/documents?entity=e1&entityId=d1`);
  await call('GET', `/ai-service/${tenant}/agentic/agents`);
  return answers;
}

function withoutGenerated(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(/"(ref|next|previous)":"[^"]*"/g, '"$1":""');
}

async function openOneServer(): Promise<TestDatabase> {
  const dataDir = await makeDataFolder();
  const embedded = await openEmbeddedDatabase({ dataDir, log: () => {}, durability: 'none' });
  const pool = createPool(embedded.url);
  await migrate(pool);
  return {
    url: embedded.url,
    pool,
    db: createDatabase(pool),
    async drop() {
      await pool.end();
      await embedded.release();
      await removeDataFolder(dataDir);
    },
  };
}

test('three tenants on two workers answer a list of calls byte for byte as one server does', async () => {
  const places = await Promise.all(tenants.map((tenant) => placementOf(server.database.pool, tenant)));
  expect(new Set(places.map(({ port }) => port)).size).toBe(2);
  const database = await openOneServer();
  const single = await startTestServer({ database, clock: { now: () => now } });
  try {
    for (const tenant of tenants) {
      const expected = await answersOf(single, tenant);
      expect(expected.filter((answer) => / 200 /.test(answer)).length).toBeGreaterThan(100);
      expect(await answersOf(server, tenant)).toEqual(expected);
    }
  } finally {
    await single.close();
    await database.drop();
  }
});

test('pages are the same from the routines of a shard and from those of all shards, and a new call of distribute makes what lacks', async () => {
  const tenant = 'routines';
  const { db, pool } = server.database;
  const token = await server.token(tenant);
  const pages = async () => {
    const paths = queries.map(
      (query) => `/changelog/${tenant}/changelogs?page=1&size=7&q=${encodeURIComponent(query)}`,
    );
    const responses = await Promise.all(paths.map((path) => server.call(path, { token })));
    return await Promise.all(responses.map((response) => response.text()));
  };
  const totalOf = (page = ''): unknown => JSON.parse(page).totalElements;
  const record = createRecorder(db, tenant, () => now);
  await record(changesOf(tenant, 0, 500));
  await foldHistory(db, tenant);
  await record(changesOf(tenant, 500, 1));
  const ofShard = await pages();
  expect(totalOf(ofShard[0])).toBe(501);
  const { shard } = await placementOf(pool, tenant);
  // A horizon beyond all entries shows that the shard's own routine answers.
  await pool.query(
    `create or replace function annals_shard_${shard}.change_horizon(of_tenant text, now bigint) returns bigint
       language plpgsql stable as 'begin return 4503599627370496; end'`,
  );
  expect(totalOf((await pages())[0])).toBe(0);
  await pool.query(`drop schema annals_shard_${shard} cascade`);
  expect(await pages()).toEqual(ofShard);
  await record(changesOf(tenant, 501, 20));
  await foldHistory(db, tenant);
  expect(totalOf((await pages())[0])).toBe(521);
  const { shards, shardsWithRoutines } = await distribute(pool);
  expect(shardsWithRoutines).toBe(shards);
  const routines = await routinesOn(server.database.url, await placementOf(pool, tenant), tenant);
  expect(await routines.call('shard_routines')).toEqual({ schema: `annals_shard_${shard}`, copy: true });
  await record(changesOf(tenant, 521, 20));
  await foldHistory(db, tenant);
  expect(totalOf((await pages())[0])).toBe(541);
});
