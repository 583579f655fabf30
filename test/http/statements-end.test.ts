import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { comesTrueWithin, eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';

const json = { 'content-type': 'application/json' };
const search = { method: 'POST', headers: json, body: JSON.stringify({ q: 'name:nobody' }) };
const custom = '/schema/acme/custom-entities';
const agentic = '/ai-service/acme/agentic';
const id = '7b0c3f8e-5f0e-4f57-9d0e-0a2f5a1b7c11';

/** One of each kind of statement that a request of an operation runs. */
const requests: readonly [string, RequestInit][] = [
  ['/changelog/acme/changelogs?q=entity:order', {}],
  ['/changelog/acme/changelogs?q=entity:order%20entityId:~1$', {}],
  ['/configuration/acme/configurations', {}],
  ['/configuration/acme/configurations', { method: 'POST', headers: json, body: '[{"key":"b","value":1}]' }],
  ['/configuration/acme/configurations/a', { method: 'PUT', headers: json, body: '{"key":"a","value":2}' }],
  [`${custom}?pageNumber=2`, {}],
  [`${custom}/THING/instances?sort=name`, { headers: { 'x-total-count': 'true' } }],
  [`${custom}/THING/instances/search`, search],
  [`${custom}/THING/instances`, { method: 'POST', headers: json, body: '{"name":"new"}' }],
  [`${custom}/THING/instances/1`, { method: 'DELETE' }],
  [`${agentic}/agents`, {}],
  [`${agentic}/agents/search`, search],
  [`${agentic}/agents/one`, {}],
  [`${agentic}/logs/requests`, {}],
  [`${agentic}/logs/sessions`, {}],
  [`${agentic}/chat-async`, { method: 'POST', headers: json, body: '{"agentId":"one","message":"hello"}' }],
  ['/ai-service/acme/jobs', {}],
  [`/ai-service/acme/jobs/${id}`, {}],
  [`/ai-service/acme/jobs/${id}`, { method: 'DELETE' }],
];

/** Server processes of the connections that requests take. */
const backends = new Set<number>();
let blocker: pg.PoolClient;

const server = closeAfterAll(await startTestServer());
const [shared] = server.context.pool.pools;
shared?.on('connect', (client) => {
  if ('processID' in client && typeof client.processID === 'number') backends.add(client.processID);
});
const token = await server.token('acme');
const type = { method: 'POST', token, headers: json, body: '{"id":"THING","name":{"en":"Thing"}}' };
expect((await server.call(custom, type)).status).toBe(201);

beforeEach(async () => {
  blocker = await server.database.pool.connect();
  // The upkeep of the service may hold one of the tables and wait for another one: the loser retries.
  while (!(await lockTables())) await blocker.query('rollback');
});

/** False after a deadlock. */
async function lockTables(): Promise<boolean> {
  await blocker.query('begin');
  try {
    await blocker.query(`do $$ declare name text; begin
      for name in select format('%I', tablename) from pg_tables
        where schemaname = 'public' and tablename !~ '^(oauth|schema|tenant|annals)' loop
        execute 'lock table ' || name || ' in access exclusive mode';
      end loop; end $$`);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === '40P01') return false;
    throw error;
  }
}

afterEach(async () => {
  await blocker.query('rollback');
  blocker.release();
});

/** Statements of requests that run, and their transactions that are open. */
async function busy(): Promise<number> {
  const { rows } = await server.database.pool.query<{ busy: number }>(
    "select count(*) as busy from pg_stat_activity where pid = any($1::int[]) and state <> 'idle'",
    [[...backends]],
  );
  return rows[0]?.busy ?? 0;
}

/** Asks until it is so, for a second at most. */
async function isQuietWithinASecond(): Promise<boolean> {
  let isQuiet = false;
  let over = false;
  const look = (async () => {
    while (!isQuiet && !over) {
      await sleep(10);
      isQuiet = (await busy()) === 0;
    }
  })();
  await comesTrueWithin(1_000, () => isQuiet);
  over = true;
  await look;
  return isQuiet;
}

test.each(requests)('a second after its client has gone, no statement of it runs: %s', async (path, init) => {
  const gone = new AbortController();
  const call = server.call(path, { ...init, token, signal: gone.signal });
  const ended = expect(call).rejects.toThrow('abort');
  await eventually(busy).toBe(1);
  gone.abort();
  await ended;
  expect(await isQuietWithinASecond()).toBe(true);
});
