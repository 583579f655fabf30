import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Browser } from '../support/server/browser.ts';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { refuseStatements } from '../support/server/refused-statements.ts';
import { startTestServer } from '../support/server/server.ts';

let elapsed = 0;
const server = closeAfterAll(await startTestServer({ clock: { elapsed: () => elapsed } }));
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

interface Described {
  paths: Record<string, { get?: { security?: Record<string, unknown>[]; parameters?: Parameter[] } }>;
  components: { parameters: Record<string, Parameter> };
}
interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required: boolean;
}

const sampleOf: Readonly<Record<string, string>> = { field: 'entity', by: 'day', interval: 'day' };

test('while the database cannot be reached every read under a tenant is 503 with Retry-After, but for the list of changes', async () => {
  const { paths, components } = (await (await server.call('/openapi.json')).json()) as Described;
  const client = await server.createClient(tenant);
  const token = await server.tokenOf(client);
  const viewerToken = await server.viewerToken(tenant, { token });
  const browser = new Browser(server);
  await browser.signIn(client);
  const made = JSON.stringify([{ key: 'language', value: 'de' }]);
  await server.call(`/configuration/${tenant}/configurations`, { method: 'POST', headers: json, body: made, token });
  const { items } = (await (await server.call(`${history}?ref=true`, { token })).json()) as {
    items: { ref: string }[];
  };
  const ref = items[0]?.ref ?? '';
  const reads = Object.entries(paths).flatMap(([path, { get }]) => {
    if (get === undefined || !path.includes('{tenant}')) return [];
    const needed = (get.parameters ?? [])
      .map((parameter) => components.parameters[parameter.$ref?.split('/').at(-1) ?? ''] ?? parameter)
      .filter((parameter) => parameter.in === 'query' && parameter.required);
    const query = new URLSearchParams(needed.map(({ name }) => [name, name === 'ref' ? ref : (sampleOf[name] ?? '1')]));
    if (path.endsWith('/log/proof')) query.set('ref', ref);
    return [{ path, isOfViewer: path.startsWith('/viewer/'), query: `${query}` }];
  });
  const bringBack = await takeDatabaseAway(server.database.url);
  try {
    const answers: Record<string, unknown> = {};
    for (const { path, isOfViewer, query } of reads) {
      const target = `${path
        .replace('{tenant}', tenant)
        .replace('{attempt}', '1')
        .replaceAll(/\{[^}]+\}/g, 'one')}?${query}`;
      const { status, retryAfter } = await answer(target, { token: isOfViewer ? viewerToken : token });
      answers[path] = `${status} ${retryAfter}`;
    }
    for (const path of ['/console/api/session', `/console/api/changelog/${tenant}/histogram?interval=day`]) {
      const { status, headers } = await browser.call(path);
      answers[path] = `${status} ${headers.get('retry-after')}`;
    }
    const others = Object.entries(answers).filter(([, described]) => described !== '503 1');
    expect(Object.fromEntries(others)).toEqual({
      '/changelog/{tenant}/changelogs': '500 null',
      // The catalogue of models is a file.
      '/ai-service/{tenant}/agentic/models': '200 null',
    });
    expect(reads.length).toBeGreaterThan(40);
  } finally {
    await bringBack();
  }
});

test('while the disk of the database is full what writes is 503 with Retry-After, and what reads continues', async () => {
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

test('while the database takes no writes what writes is 503 with Retry-After, and what reads continues', async () => {
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
