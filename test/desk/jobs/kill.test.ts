import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { type Call, endOfJob, startExport } from '../../support/server/jobs.ts';
import { type ServiceProcesses, startServices } from '../../support/server/service-processes.ts';
import { startVendor, type Vendor } from '../../support/vendor/vendor-server.ts';

const random = new Random();

const kills = trials(1);
const tenant = 'killed';
const entries = 2_000;

let database: TestDatabase;
let services: ServiceProcesses;
let vendor: Vendor;
let call: Call;

beforeAll(async () => {
  database = await createTestDatabase();
  await createTenant(database.db, tenant);
  await record(Array.from({ length: entries }, (_, index) => changeOf(`old-${index}`, index * 20)));
  vendor = await startVendor();
  services = await startServices(1, {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
    OPENAI_BASE_URL: vendor.baseUrl,
  });
  call = await callerOf();
});

afterAll(async () => {
  await services.end();
  await vendor.close();
  await database.drop();
});

test(`with the worker killed at ${kills} random moments every export ends, complete, right and one snapshot`, async () => {
  const over = new AbortController();
  const writing = writeMarkers(over.signal);
  const exports: { id: string; format: string }[] = [];
  const cutShort = new Set<string>();
  for (let kill = 0; kill < kills; kill++) {
    for (const format of ['NDJSON', 'CSV']) {
      exports.push({ id: await startExport(call, tenant, { q: 'entity:product', format }), format });
    }
    // One kill at least is in the middle of an export, however quick the machine is.
    if (kill === 0) while ((await underWay()).length === 0) await sleep(2);
    else await sleep(random.below(1_500));
    for (const id of await underWay()) cutShort.add(id);
    await killWorker();
  }
  for (const { id, format } of exports) {
    const job = await endOfJob(call, tenant, id, 120);
    expect(job.status).toBe('success');
    const text = await (await call(`/ai-service/${tenant}/jobs/${id}/content`)).text();
    expect(job.metadata.bytes).toBe(Buffer.byteLength(text));
    const lines = text.trimEnd().split(/\r?\n/);
    const rows = format === 'CSV' ? lines.slice(1) : lines;
    expect(job.metadata.entries).toBe(rows.length);
    const ids = rows.map((row) => /(?:old|new)-\d+/.exec(row)?.[0] ?? row);
    expect(ids.filter((entityId) => entityId.startsWith('old-'))).toEqual(
      Array.from({ length: entries }, (_, i) => `old-${i}`),
    );
    // Marks are recorded one after the other: a snapshot sees the first so many of them, and no gap.
    const marks = ids.filter((entityId) => entityId.startsWith('new-')).map((entityId) => Number(entityId.slice(4)));
    expect(marks.sort((left, right) => left - right)).toEqual(marks.map((_, index) => index));
  }
  over.abort();
  const recorded = await writing;
  const response = await call(`/changelog/${tenant}/changelogs?q=entity:product&size=1`);
  expect(await response.json()).toMatchObject({ totalElements: entries + recorded });
  expect(cutShort.size).toBeGreaterThan(0);
  const { rows } = await database.pool.query("select max(attempt) as attempts from job where type = 'EXPORT'");
  console.info(
    `${kills} kills: ${exports.length} exports of ${entries} entries and up to ${recorded} recorded meanwhile, ` +
      `${cutShort.size} of them cut short, at most ${rows[0].attempts} attempts for one`,
  );
});

/** As `kill -9` does; another one takes its place, and a minute passes at once. The last one is not killed. */
async function killWorker(isLast = false): Promise<void> {
  await (isLast ? services.replaceForGood(0) : services.replace(0));
  // The leases expire at once, as if a minute had passed.
  await database.pool.query(
    "update job set held_until = now() where status = 'in_progress' and held_until is not null",
  );
}

async function underWay(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    "select id from job where status = 'in_progress' and attempt > 0",
  );
  return rows.map(({ id }) => id);
}

/** Records one change after the other, each into a random past moment; answers how many. */
async function writeMarkers(over: AbortSignal): Promise<number> {
  let count = 0;
  while (!over.aborted) {
    await record([changeOf(`new-${count}`, random.below(entries * 20))]);
    count += 1;
    await sleep(20);
  }
  return count;
}

async function record(changes: readonly Change[]): Promise<void> {
  await createRecorder(database.db, tenant, () => Date.now())(changes);
}

const begin = Date.now();

function changeOf(entityId: string, age: number): Change {
  return {
    identity: randomBytes(16),
    at: Math.floor(begin - age),
    type: 'update',
    entity: 'product',
    entityId,
    actor: 'Jane Doe',
    related: [{ entity: 'group', entityId: 'g' }],
    paths: JSON.stringify({ note: { before: 'x'.repeat(150), after: randomBytes(60).toString('hex') } }),
  };
}

async function callerOf(): Promise<Call> {
  const { clientId, clientSecret } = await createClient(database.db, {
    tenant,
    scope: 'ai.agent_manage ai.agentexecution_manage changelog.changelog_read',
  });
  const response = await fetch(`${await services.next()}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret }),
  });
  const { access_token: token } = (await response.json()) as { access_token: string };
  return async (path, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${token}`);
    return await fetch(`${await services.next()}${path}`, { ...init, headers });
  };
}
