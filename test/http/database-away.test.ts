import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { refuseStatements } from '../support/server/refused-statements.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

let elapsed = 0;
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ clock: { elapsed: () => elapsed } });
});
afterAll(() => server.close());

const tenant = 'acme';
const json = { 'content-type': 'application/json' };
const operations: [string, RequestInit?][] = [
  [`/configuration/${tenant}/configurations`],
  [`/schema/${tenant}/custom-entities`],
  [`/schema/${tenant}/custom-entities/note/instances`],
  [`/schema/${tenant}/custom-entities/note`, { method: 'PUT', headers: json, body: '{"id":"note"}' }],
  [`/ai-service/${tenant}/agentic/agents`],
  [`/ai-service/${tenant}/agentic/logs/requests`],
  [`/ai-service/${tenant}/jobs`],
  [`/ai-service/${tenant}/completions/usage`],
];
const history = `/changelog/${tenant}/changelogs`;

async function answer(path: string, init: RequestInit & { token?: string } = {}) {
  const response = await server.call(path, init);
  return {
    path,
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: await response.json().catch(() => undefined),
  };
}

test('while the database cannot be reached the history is 500, and everything else 503 with Retry-After', async () => {
  const client = await server.createClient(tenant);
  const token = await server.tokenOf(client);
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.clientId,
    client_secret: client.clientSecret,
  });
  const away = (path: string) => ({
    path,
    status: 503,
    retryAfter: '1',
    body: { status: 503, type: 'service_unavailable', message: 'The database cannot be reached.' },
  });
  const all = async () => {
    const answers = [];
    for (const [path, init] of operations) answers.push(await answer(path, { ...init, token }));
    return answers;
  };
  for (const known of [true, false]) {
    const bringBack = await takeDatabaseAway(server.database.url);
    // At first the client of the token is remembered; later the check of the token needs the database.
    if (!known) elapsed += 60_000;
    expect(await all()).toEqual(operations.map(([path]) => away(path)));
    expect(await answer(history, { token })).toEqual({
      path: history,
      status: 500,
      retryAfter: null,
      body: {
        status: 500,
        type: 'internal_service_error',
        message: 'Problem encountered while trying to retrieve changelog history.',
      },
    });
    expect(await answer('/oauth/token', { method: 'POST', body: form })).toEqual(away('/oauth/token'));
    expect(await answer('/health/ready')).toMatchObject({ status: 503, retryAfter: '1' });
    await bringBack();
    expect((await all()).map(({ status }) => status).every((status) => status < 500)).toBe(true);
    expect((await answer(history, { token })).status).toBe(200);
    expect((await answer('/oauth/token', { method: 'POST', body: form })).status).toBe(200);
  }
});

test('while the disk of the database is full what writes is 503 with Retry-After, and what reads goes on', async () => {
  const token = await server.token(tenant);
  const { pool } = server.database;
  const full = {
    table: 'change_entry',
    on: 'insert',
    message: 'could not extend file',
    condition: 'disk_full',
  } as const;
  const makeRoom = await refuseStatements(pool, full);
  const body = JSON.stringify([{ key: 'currency', value: 'EUR' }]);
  const write = () => answer(`/configuration/${tenant}/configurations`, { method: 'POST', headers: json, body, token });
  expect(await write()).toMatchObject({
    status: 503,
    retryAfter: '5',
    body: { type: 'service_unavailable', message: 'The database is at its limit.' },
  });
  expect((await answer(history, { token })).status).toBe(200);
  await makeRoom();
  expect((await write()).status).toBeLessThan(300);
});

test('while the database takes no writes what writes is 503 with Retry-After, and what reads goes on', async () => {
  const token = await server.token(tenant);
  const { pool } = server.database;
  const readOnly = {
    table: 'change_entry',
    on: 'insert',
    message: 'cannot execute INSERT in a read-only transaction',
    condition: 'read_only_sql_transaction',
  } as const;
  const takeWrites = await refuseStatements(pool, readOnly);
  const body = JSON.stringify([{ key: 'country', value: 'DE' }]);
  const write = () => answer(`/configuration/${tenant}/configurations`, { method: 'POST', headers: json, body, token });
  expect(await write()).toMatchObject({
    status: 503,
    retryAfter: '5',
    body: { type: 'service_unavailable', message: 'The database takes no writes.' },
  });
  expect((await answer(history, { token })).status).toBe(200);
  await takeWrites();
  expect((await write()).status).toBeLessThan(300);
});
