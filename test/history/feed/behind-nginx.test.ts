import { EventSource } from 'eventsource';
import { expect, onTestFinished, test } from 'vitest';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf } from '../../support/server/history.ts';
import { startNginx } from '../../support/server/nginx.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15);
const server = closeAfterAll(await startTestServer());

async function record(at: number): Promise<void> {
  await createRecorder(server.context.db, tenant, () => now)([changeOf({ at: now + at })]);
}

test("npm's eventsource follows through nginx with default buffering, even after its connection is cut", async () => {
  const token = await server.token(tenant);
  const address = await startNginx(server.baseUrl);
  await record(1);
  const feed = new EventSource(`${address}/changelog/${tenant}/feed?after=start`, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } }),
  });
  onTestFinished(() => feed.close());
  const seen: string[] = [];
  const opened: number[] = [];
  feed.addEventListener('change', ({ data, lastEventId }) => {
    const change = JSON.parse(data);
    seen.push(`${change.position} ${change.cursor === lastEventId}`);
  });
  feed.addEventListener('position', ({ data }) => opened.push(JSON.parse(data).position));
  await expect.poll(() => seen).toEqual(['1 true']);
  await record(2);
  await expect.poll(() => seen).toEqual(['1 true', '2 true']);
  // As a restarting proxy does. The client reconnects after the 5 seconds that the service sends.
  server.app.server.closeAllConnections();
  await record(3);
  await expect.poll(() => seen).toEqual(['1 true', '2 true', '3 true']);
  expect(opened).toEqual([0, 2]);
});
