import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as requestTo, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { startChromium } from '../../console/test/support/chromium.ts';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { median, printTable } from '../figures.ts';
import { openBenchServer } from '../server.ts';
import { environmentOf, startService, tokenOf } from '../service.ts';

// How long a customer's page takes until it shows the first changes of the viewer, on a slow phone. README.md says how to run it.
const { values: settings } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** Prints when each request of the first round began and ended. */
    requests: { type: 'boolean', default: false },
  },
});
const rounds = Number(settings.rounds);

/** Milliseconds to the first byte, and bytes a second: fast 3G by Lighthouse's measured link, and by its throttled requests. */
const networks = [
  { name: '150 ms, 1.6 Mbit/s', latency: 150, down: 204_800, up: 93_750 },
  { name: '562 ms, 1.4 Mbit/s', latency: 562.5, down: 184_320, up: 84_375 },
];

execFileSync(process.execPath, [join(import.meta.dirname, '../../build/pages.ts')], { stdio: 'inherit' });
const bench = await openBenchServer();
const database = await bench.create();
const tenant = 'acme';
await createTenant(database.db, tenant);
await record();
const service = await startService(environmentOf(database.url));
let latency = 0;
const annals = await startAnnals();
const annalsUrl = urlOf(annals);
const maker = await tokenOf(
  service.baseUrl,
  await createClient(database.db, { tenant, scope: 'changelog.viewer_issue changelog.changelog_read' }),
);
const host = await startHost();
const browser = await startChromium();
try {
  const rows: string[][] = [];
  for (const { name, ...network } of networks) {
    latency = network.latency;
    for (const path of ['/', '/?token']) {
      const times: number[] = [];
      for (let round = 0; round < rounds; round += 1) times.push(await timeOf(browser, path, network, round === 0));
      rows.push([name, path, String(Math.round(median(times)))]);
    }
  }
  printTable(['network', 'page', 'first changes, ms'], rows);
} finally {
  await browser.close();
  host.close();
  annals.close();
  await service.stop();
  await database.drop();
  await bench.release();
}

/** 5,000 changes of the customer's orders, with notes. */
async function record(): Promise<void> {
  const now = Date.now();
  const recorder = createRecorder(database.db, tenant, () => now);
  for (let start = 0; start < 5_000; start += 1_000) {
    const changes = Array.from({ length: 1_000 }, (_, index) => ({
      identity: randomBytes(16),
      at: now - (start + index) * 60_000,
      type: 'update' as const,
      entity: 'order',
      entityId: `A-${index % 50}`,
      actor: 'Mara',
      related: [{ entity: 'customer', entityId: 'c1' }],
      paths: JSON.stringify({
        status: { before: 'OPEN', after: 'PAID' },
        note: { before: 'Call before noon. '.repeat(8), after: 'Leave it with the neighbour. '.repeat(8) },
        total: { before: index, after: index + 1 },
      }),
    }));
    await recorder(changes);
  }
}

async function makeToken(): Promise<{ token: string; expiresIn: number }> {
  const response = await fetch(`${service.baseUrl}/changelog/${tenant}/viewer-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${maker}`, 'content-type': 'application/json' },
    body: JSON.stringify({ q: 'related.entityId:c1', subject: 'c1' }),
  });
  if (response.status !== 201) throw new Error(await response.text());
  return (await response.json()) as { token: string; expiresIn: number };
}

/** The service behind a proxy that delays preflights: the browser's throttle leaves them out. */
async function startAnnals(): Promise<Server> {
  const proxy = createServer((incoming, outgoing) => {
    const { method = 'GET', headers, url } = incoming;
    const send = () =>
      requestTo(`${service.baseUrl}${url}`, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      }).end();
    setTimeout(send, method === 'OPTIONS' ? latency : 0);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return proxy;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The platform's own server: its page takes the component from Annals, and with `?token` it has the first token. */
async function startHost(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const { url } = request;
    if (url === '/viewer-token') return void response.end(JSON.stringify(await makeToken()));
    if (url !== '/' && url !== '/?token') return void response.writeHead(404).end();
    const token = url === '/' ? '' : `history.token = ${JSON.stringify(await makeToken())};`;
    response.setHeader('content-type', 'text/html').end(`<!doctype html><html lang="en"><title>Your account</title>
      <meta name="viewport" content="width=device-width"><script type="module" src="${annalsUrl}/viewer.js"></script>
      <annals-history base-url="${annalsUrl}" tenant="${tenant}"></annals-history>
      <script>{
        const history = document.querySelector('annals-history');
        history.getToken = async () => await (await fetch('/viewer-token', { method: 'POST' })).json();
        ${token}
      }</script></html>`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Milliseconds from the address until the first change is drawn, with an empty cache. */
async function timeOf(
  on: Browser,
  path: string,
  network: { latency: number; down: number; up: number },
  isFirst: boolean,
): Promise<number> {
  const context = await on.newContext({ viewport: { width: 390, height: 800 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: network.latency,
    downloadThroughput: network.down,
    uploadThroughput: network.up,
  });
  await session.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  const begun = performance.now();
  const since = () => Math.round(performance.now() - begun);
  if (isFirst && settings.requests) {
    page.on('request', (request) => console.error(since(), request.method(), request.url().slice(0, 90)));
    page.on('requestfinished', (request) => console.error(since(), 'done', request.url().slice(0, 90)));
  }
  await page.goto(`${urlOf(host)}${path}`, { waitUntil: 'commit' });
  await page.locator('annals-history .change').first().waitFor();
  const time = since();
  await context.close();
  return time;
}
