import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as rest } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { createClient } from '../../src/access/oauth/clients.ts';
import { unfolded } from '../../src/history/upkeep/fold.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { tenantsWith } from '../../src/postgres/tenants/tenants-with.ts';
import { startAnnals } from '../support/server/command.ts';
import { createTestDatabase } from '../support/server/database.ts';

const list = '/schema/acme/custom-entities/BOX/instances';

const lines: Record<string, unknown>[] = [];

const database = await createTestDatabase();
await createTenant(database.db, 'acme');
const environment = {
  DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  ANNALS_WORKERS: '2',
  PORT: '0',
};
const service = startAnnals(['serve'], environment);
let half = '';
service.process.stderr?.on('data', (chunk) => {
  const parts = `${half}${chunk}`.split('\n');
  half = parts.pop() ?? '';
  lines.push(...parts.filter((part) => part.startsWith('{')).map((part) => JSON.parse(part)));
});
const scope = 'schema.schema_manage schema.custominstance_manage';
const [url, { clientId, clientSecret }] = await Promise.all([
  service.firstLine,
  createClient(database.db, { tenant: 'acme', scope, name: 'Shop' }),
]);
const baseUrl = new URL(url);
const granted = await fetch(new URL('/oauth/token', url), {
  method: 'POST',
  headers: { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` },
  body: new URLSearchParams({ grant_type: 'client_credentials' }),
});
const token = ((await granted.json()) as { access_token: string }).access_token;

afterAll(async () => {
  service.process.kill('SIGKILL');
  await service.ended;
  await database.drop();
});

interface Answer {
  status: number | undefined;
  next: string | undefined;
  body: unknown;
}

/** On a connection of its own, so that the workers take turns. */
async function call(method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const outgoing = request(new URL(path, baseUrl), { method, headers, agent: false }, (response) => {
      const { statusCode: status, headers: got } = response;
      const next = got['x-next-cursor'];
      text(response).then(
        (json) => resolve({ status, next: next?.toString(), body: JSON.parse(json) }),
        (error: unknown) => reject(error),
      );
    });
    // A connection that is neither answered nor closed is found here.
    outgoing.setTimeout(60_000, () => reject(new Error('no answer within a minute')));
    outgoing.on('error', reject);
    outgoing.end(body && JSON.stringify(body));
  });
}

const saidBy = (message: string) => lines.filter(({ msg }) => msg === message);

async function idsOfList(pageSize: number): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const from: string = cursor === '' ? '' : `&next=${encodeURIComponent(cursor)}`;
    const { status, next, body } = await call('GET', `${list}?pageSize=${pageSize}${from}`);
    expect(status, JSON.stringify(body)).toBe(200);
    ids.push(...(body as { id: string }[]).map(({ id }) => id));
    cursor = next;
  }
  return ids;
}

test('two workers answer the pages of one list as one, and each line of the log says which', async () => {
  expect((await call('PUT', '/schema/acme/custom-entities/BOX', { name: { en: 'Box' } })).status).toBe(201);
  const ids = Array.from({ length: 11 }, (_, index) => `box-${String(index).padStart(2, '0')}`);
  const made = await Promise.all(ids.map((id) => call('POST', list, { id })));
  expect(made.map(({ status }) => status)).toEqual(ids.map(() => 201));
  expect((await idsOfList(2)).sort()).toEqual(ids);
  const pages = () => lines.filter(({ path, method }) => path === list && method === 'GET');
  await expect.poll(() => pages().length).toBe(6);
  expect(new Set(pages().map(({ worker }) => worker))).toEqual(new Set([1, 2]));
});

test('a port in use is exit code 1 and one message, as for one process', async () => {
  expect(await startAnnals(['serve'], { ...environment, PORT: baseUrl.port, LOG_LEVEL: 'warn' }).ended).toEqual({
    code: 1,
    signal: null,
    stdout: '',
    stderr: `annals: port ${baseUrl.port} of 127.0.0.1 is in use; set PORT to another one, or to 0 for any free one\n`,
  });
});

test('when the worker that does the upkeep is killed, the other serves and continues with it', async () => {
  const [{ worker: leader } = {}] = saidBy('this worker does the upkeep from now on');
  const { process: victim } = saidBy('a worker is ready').find(({ worker }) => worker === leader) ?? {};
  const acknowledged: string[] = [];
  const broken: unknown[] = [];
  let isOver = false;
  const loops = Array.from({ length: 3 }, async (_, loop) => {
    for (let turn = 0; !isOver; turn++) {
      const id = `late-${loop}-${turn}`;
      try {
        const { status, body } = await call('POST', list, { id });
        expect(status, JSON.stringify(body)).toBe(201);
        acknowledged.push(id);
      } catch (error) {
        if (!(error instanceof Error && 'code' in error)) throw error;
        broken.push(error.code);
      }
      await rest(100);
    }
  });
  try {
    await expect.poll(() => acknowledged.length).toBeGreaterThan(6);
    process.kill(Number(victim), 'SIGKILL');
    // To start a process takes long on a busy machine, and the loops keep it busy.
    await expect.poll(() => saidBy('a worker is ready').length, { timeout: 120_000 }).toBe(3);
  } finally {
    isOver = true;
    await Promise.all(loops);
  }
  // Each loop has one request under way.
  expect(broken.length).toBeLessThanOrEqual(3);
  expect((await idsOfList(500)).filter((id) => id.startsWith('late'))).toEqual(expect.arrayContaining(acknowledged));
  expect(saidBy('a worker ended by SIGKILL; a new one takes its place')).toMatchObject([
    { worker: leader, seconds: 0 },
  ]);
  expect(saidBy('this worker does the upkeep from now on').map(({ worker }) => worker)).toEqual([
    leader,
    leader === 1 ? 2 : 1,
  ]);
  await expect.poll(() => tenantsWith(database.db, unfolded)).toEqual([]);
});

test('SIGTERM lets all workers finish what is in flight, and ends all with 0', async () => {
  const body = 'grant_type=client_credentials';
  const halves = [1, 2].map(() => {
    const socket = connect(Number(baseUrl.port), baseUrl.hostname);
    socket.write(
      `POST /oauth/token HTTP/1.1\r\nHost: annals\r\nContent-Type: application/x-www-form-urlencoded\r\n` +
        `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body.slice(0, 5)}`,
    );
    return { socket, answer: text(socket) };
  });
  // Answered by both workers after the halves have arrived.
  for (const _ of halves) expect((await call('GET', list)).status).toBe(200);
  service.process.kill('SIGTERM');
  await expect
    .poll(() =>
      call('GET', list).then(
        ({ status }) => status,
        ({ code }) => code,
      ),
    )
    .toBe('ECONNREFUSED');
  for (const { socket } of halves) socket.write(body.slice(5));
  for (const { answer } of halves) expect(await answer).toMatch(/^HTTP\/1\.1 401 /);
  expect(await service.ended).toMatchObject({ code: 0, signal: null, stdout: `${baseUrl.origin}\n` });
  for (const { process: id } of saidBy('a worker is ready')) expect(() => process.kill(Number(id), 0)).toThrow('ESRCH');
});
