import { afterAll, beforeAll, expect, test } from 'vitest';
import { amidOutages, type OutageReport } from '../support/server/amid-outages.ts';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

async function amid(tenant: string, outage: () => Promise<void>): Promise<OutageReport> {
  const { baseUrl } = server;
  const { pool } = server.database;
  return await amidOutages({ baseUrl, tenant, client: await server.createClient(tenant), pool, times: 3, outage });
}

function expectHonest({ dishonest, lost, recoveries, acknowledged, counts }: OutageReport): void {
  expect({ dishonest, lost }).toEqual({ dishonest: [], lost: [] });
  expect(recoveries).toHaveLength(3);
  expect(acknowledged).toBe(counts['write 201']);
}

test('amid a database that goes and comes all answers are honest, and nothing acknowledged is lost', async () => {
  const report = await amid('acme', async () => {
    const bringBack = await takeDatabaseAway(server.database.url);
    await bringBack();
  });
  expectHonest(report);
  expect(report.counts['history 500']).toBeGreaterThan(0);
  expect(report.counts['write 503']).toBeGreaterThan(0);
});

test('amid connections that the server ends all answers are honest, and nothing acknowledged is lost', async () => {
  const report = await amid('globex', async () => {
    await server.database.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name = 'annals'`,
    );
  });
  expectHonest(report);
});
