import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DescribedInterface } from '../support/oracle/request-arbitrary.ts';
import { putAgent } from '../support/server/agents.ts';
import { comesTrueWithin, eventually, letOthersWork } from '../support/server/patience.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { statementsWaiting } from '../support/server/statements-waiting.ts';

const tenant = 'acme';
const json = { 'content-type': 'application/json' };
/** Tables that clients' calls read, and that nothing reads in the background. */
const tables =
  'change_entry, change_tally, custom_entity, custom_instance, configuration, agent, agent_request_log, agent_session_log';

let server: TestServer;
let token: string;
let viewerToken: string;
let operations: { method: string; path: string; body?: string }[];

beforeAll(async () => {
  server = await startTestServer();
  token = await server.token(tenant);
  viewerToken = await server.viewerToken(tenant, { token });
  await putAgent(server, { tenant, token, id: 'desk' });
  const send = (method: string, path: string, body: string) =>
    server.call(`/schema/${tenant}/custom-entities${path}`, { token, method, headers: json, body });
  await send('POST', '', '{"id":"THING","name":{"en":"Thing"}}');
  await send('PUT', '/THING/instances/one', '{"name":"One"}');
  const { paths } = (await (await server.call('/openapi.json')).json()) as DescribedInterface;
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).flatMap((method) => {
      // It takes what only the list tells. The list itself is asked.
      if (path.endsWith('/entries')) return [];
      const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? 'one') + parametersOf(path);
      if (!path.includes('{tenant}') || path.includes('/jobs')) return [];
      if (method === 'get') return [{ method: 'GET', path: filled }];
      return method === 'post' && path.endsWith('/search') ? [{ method: 'POST', path: filled, body: '{"q":""}' }] : [];
    }),
  );
});

afterAll(() => server.close());

const ids: Record<string, string> = { tenant, type: 'THING' };

/** Those that an operation requires. */
function parametersOf(path: string): string {
  if (/\/(facets|names)$/.test(path)) return '?field=entity';
  if (path.endsWith('/log/proof')) return '?position=1';
  return path.endsWith('/changelog/{tenant}/documents') ? '?entity=order&entityId=1' : '';
}

const tokenFor = (path: string) => (path.startsWith('/viewer/') ? viewerToken : token);

const running = () => statementsWaiting(server.database);

test('a second after all clients have left, no statement of theirs runs, whatever they had asked for', async () => {
  expect(operations.length).toBeGreaterThan(15);
  const blocker = await server.database.pool.connect();
  await blocker.query('begin');
  await blocker.query(`lock table ${tables} in access exclusive mode`);
  try {
    const gone = new AbortController();
    const outcomes = Promise.allSettled(
      operations.map(({ method, path, body }) =>
        server.call(path, {
          token: tokenFor(path),
          method,
          signal: gone.signal,
          ...(body === undefined ? {} : { headers: json, body }),
        }),
      ),
    );
    await eventually(async () => (await running()).length).toBeGreaterThan(2);
    await letOthersWork(500);
    gone.abort();
    await outcomes;
    let left: string[] = ['not asked yet'];
    const looking = new AbortController();
    const look = (async () => {
      while (!looking.signal.aborted) left = await running();
    })();
    await comesTrueWithin(1_000, () => left.length === 0);
    looking.abort();
    await look;
    expect(left).toEqual([]);
  } finally {
    await blocker.query('rollback');
    blocker.release();
  }
  // And whoever comes next is answered.
  for (const { method, path, body } of operations) {
    const response = await server.call(path, {
      token: tokenFor(path),
      method,
      ...(body === undefined ? {} : { headers: json, body }),
    });
    await response.arrayBuffer();
    expect({ path, ok: response.status === 200 || response.status === 404 }).toEqual({ path, ok: true });
  }
});
