import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { eventsOf, putAgent } from '../support/server/agents.ts';
import { Browser } from '../support/server/browser.ts';
import { type Call, endOfJob, startExport } from '../support/server/jobs.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';
import { startVendor } from '../support/vendor/vendor-server.ts';

const tenant = 'acme';
const pack = promisify(zstdCompress);

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl } }));
const client = await server.createClient(tenant);
await putAgent(server, { tenant, token: await server.tokenOf(client), id: 'desk' });
const browser = new Browser(server);
await browser.signIn(client);

test('a chat streams while its model still writes, and comes to its end', async () => {
  const chat = () =>
    browser.post(`/console/api/ai-service/${tenant}/agentic/chat-stream`, { agentId: 'desk', message: 'count' });
  vendor.behave({ kind: 'answer', text: 'one two three' });
  const whole = await chat();
  expect(whole.headers.get('content-type')).toBe('text/event-stream');
  const events = eventsOf(await whole.text());
  expect(events.at(-1)?.event).toBe('done');

  vendor.behave({ kind: 'stall' });
  const stalled = await chat();
  const reader = (stalled.body ?? new ReadableStream()).getReader();
  let seen = '';
  while (!seen.includes('event: token')) {
    const { value, done } = await reader.read();
    expect(done, seen).toBe(false);
    seen += Buffer.from(value ?? []).toString();
  }
  await reader.cancel();
  await eventually(() => vendor.abandoned.length).toBe(1);
  vendor.behave({ kind: 'answer' });
});

test('an export of 16 MiB is downloaded as an attachment, with every byte', async () => {
  const call: Call = (path, init) =>
    browser.call(`/console/api${path}`, init as { method?: string; body?: string; headers?: Record<string, string> });
  const id = await startExport(call, tenant, { q: 'entity:nothing', format: 'NDJSON' });
  expect((await endOfJob(call, tenant, id)).status).toBe('success');
  const pieces = 16;
  const piece = Buffer.alloc(1024 * 1024, '{"entity":"order","entityId":"10001"}\n');
  await server.database.pool.query(
    `insert into job_chunk (tenant, job, chunk, bytes, content)
       select $1, $2, chunk, $3, $4 from generate_series((select count(*) + 1 from job_chunk where job = $2), $5::integer) chunk`,
    [tenant, id, piece.length, await pack(piece), pieces],
  );
  await server.database.pool.query(
    `update job set full_document = jsonb_set(full_document::jsonb, '{metadata,bytes}', to_jsonb($3::bigint))::text
       where tenant = $1 and id = $2`,
    [tenant, id, pieces * piece.length],
  );
  const answer = await browser.call(`/console/api/ai-service/${tenant}/jobs/${id}/content`);
  expect([answer.status, answer.headers.get('content-length')]).toEqual([200, String(16 * 1024 * 1024)]);
  expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="changes-${id}.ndjson"`);
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const received = createHash('sha256');
  for await (const chunk of answer.body ?? []) received.update(chunk);
  const expected = createHash('sha256');
  for (let count = 0; count < pieces; count += 1) expected.update(piece);
  expect(received.digest('hex')).toBe(expected.digest('hex'));
});
