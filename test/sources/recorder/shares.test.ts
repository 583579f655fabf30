import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestShares } from '../../../src/http/request-work.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestRecorder, type TestRecorder } from '../../support/server/recorder.ts';
import { keepsCompiled } from '../../support/server/script.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

const scope = 'recorder.change_record';
let server: TestServer;
let recorder: TestRecorder;

beforeAll(async () => {
  server = await startTestServer();
  // Requests are held back here longer than a busy machine needs to send them all.
  recorder = await startTestRecorder(server, { requestLimit: 150_000 });
  const token = await server.token('early', { scope });
  // A thread that reads bodies starts with the first request, which may take its time.
  for (let status = 0; status !== 200; )
    ({ status } = await recorder.post('early', JSON.stringify(change()), { token }));
});
afterAll(async () => {
  await recorder.close();
  await server.close();
});

function change(after: unknown = { a: 1 }): Record<string, unknown> {
  const id = randomBytes(8).toString('hex');
  return { op: 'insert', entity: 'parcel', entityId: id, id, at: new Date().toISOString(), after };
}

/** A tenant whose changes wait: whoever records its first parcel needs its row. */
async function heldTenant(tenant: string) {
  const token = await server.token(tenant, { scope, name: tenant });
  const client = await server.database.pool.connect();
  await client.query('begin');
  await client.query('select from tenant where tenant = $1 for update', [tenant]);
  const answers: Response[] = [];
  return {
    answers,
    send: async () => void answers.push(await recorder.post(tenant, JSON.stringify(change()), { token })),
    entries: async () => {
      const { rows } = await server.database.pool.query<{ count: number }>(
        'select count(*)::integer as count from change_entry where tenant = $1',
        [tenant],
      );
      return rows[0]?.count;
    },
    async letGo() {
      await client.query('rollback');
      client.release();
    },
  };
}

test('a tenant may have 64 requests under way and 256 that wait; each further one is 429, and nothing of it is taken', async () => {
  const { maxOfTenant, maxWaitingOfTenant } = requestShares.requests;
  const allowed = maxOfTenant + maxWaitingOfTenant;
  const crowd = await heldTenant('crowd');
  const further = 5;
  const sent = Array.from({ length: allowed + further }, () => crowd.send());
  await eventually(() => crowd.answers.length).toBe(further);
  for (const { status, headers } of crowd.answers) {
    expect(status).toBe(429);
    expect(headers.get('retry-after')).toMatch(/^[0-9]+$/);
  }
  await crowd.letGo();
  await Promise.all(sent);
  expect(crowd.answers.filter(({ status }) => status === 200)).toHaveLength(allowed);
  expect(await crowd.entries()).toBe(allowed);
});

test('a bystander records at once beside two tenants that have all their requests under way', async () => {
  const attackers = [await heldTenant('first'), await heldTenant('second')];
  const token = await server.token('bystander', { scope, name: 'Bystander' });
  const all = requestShares.requests.maxOfTenant;
  const sent = attackers.flatMap(({ send }) => Array.from({ length: all }, send));
  for (let request = 0; request < 3; request++) {
    const answer = await recorder.post('bystander', JSON.stringify(change()), { token });
    expect(answer.status).toBe(200);
  }
  for (const { answers } of attackers) expect(answers).toEqual([]);
  for (const { letGo } of attackers) await letGo();
  await Promise.all(sent);
  for (const { entries } of attackers) expect(await entries()).toBe(all);
});

test('a long request is read in turns of the event loop, and none is long', async () => {
  const { clientId, clientSecret } = await server.createClient('long', { scope });
  const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  const child = fork(join(import.meta.dirname, '../../support/server/probed-recorder.ts'), {
    env: {
      ...keepsCompiled,
      PATH: process.env.PATH,
      DATABASE_URL: server.database.url,
      ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
      ANNALS_RECORDER_PORT: '0',
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  try {
    const [baseUrl] = child.stdout === null ? [] : await once(createInterface({ input: child.stdout }), 'line');
    const maxTurn = async (): Promise<number> => {
      const answered = once(child, 'message');
      child.send('tell');
      const [{ maxTurn: milliseconds }] = await answered;
      return milliseconds;
    };
    const post = async (body: Buffer<ArrayBuffer>) => {
      const headers = {
        authorization,
        'content-type': 'application/x-ndjson',
        'content-encoding': 'gzip',
      };
      const answer = await fetch(`${baseUrl}/recorder/long/changes`, { method: 'POST', headers, body });
      expect(answer.status).toBe(200);
    };
    const lines = (count: number, after: unknown) =>
      gzipSync(Array.from({ length: count }, () => JSON.stringify(change(after))).join('\n'));
    const bodies = {
      '2,000 changes of 4 KB': lines(2_000, { note: 'note '.repeat(780) }),
      'a change of 15 MB': lines(1, { note: 'note '.repeat(3_000_000) }),
      'a change of 300,000 values': lines(
        1,
        Array.from({ length: 300_000 }, (_none, index) => index),
      ),
    };
    // The first request of a process compiles code.
    for (let turn = 0; turn < 5; turn++) await post(lines(200, { a: 1, b: ['c'] }));
    const held: Record<string, number> = {};
    for (const [name, body] of Object.entries(bodies)) {
      await maxTurn();
      await post(body);
      held[name] = await maxTurn();
    }
    // Turns are to have 50 ms of processor time at most. A slow and busy machine takes up to three times as long for the same work.
    for (const [name, milliseconds] of Object.entries(held)) expect(milliseconds, name).toBeLessThan(150);
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
});
