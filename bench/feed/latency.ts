import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { spread } from '../figures.ts';
import { memoryOf, processTime } from '../processor-time.ts';
import { makeTenant, openBenchServer } from '../server.ts';
import { environmentOf, startService, tokenOf } from '../service.ts';
import type { WriterTask } from './writer.ts';

// Milliseconds from the commit of a change to a client of server-sent events. One tenant has changes; readers follow it
// and others.
const { values: settings } = parseArgs({
  options: {
    rate: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '30' },
    /** Followed tenants, the busy one included, each by one reader. */
    tenants: { type: 'string', default: '1000' },
    /** Readers of the busy tenant, all of one query. */
    readers: { type: 'string', default: '1' },
  },
});
const [tenants, readers] = [Number(settings.tenants), Number(settings.readers)];
const busy = 'busy';
const clock = () => performance.timeOrigin + performance.now();

const server = await openBenchServer();
const { url, db, drop } = await server.create({ connections: 12 });
const service = await startService(environmentOf(url));
const { baseUrl } = service;
try {
  const seen = new Map<number, number>();
  const names = [busy, ...Array.from({ length: tenants - 1 }, (_none, number) => `quiet${number + 1}`)];
  const tokens: string[] = [];
  for (const name of names) tokens.push(await tokenOf(baseUrl, await makeTenant(db, name, 'changelog.changelog_read')));
  const [busyToken = '', bystanderToken = ''] = tokens;
  for (const [place, name] of names.entries()) await follow(name, tokens[place] ?? '', place === 0 ? seen : undefined);
  for (let reader = 1; reader < readers; reader += 1) await follow(busy, busyToken, undefined);
  process.stderr.write(`${names.length + readers - 1} readers\n`);

  const task: WriterTask = {
    url,
    tenant: busy,
    rate: Number(settings.rate),
    seconds: Number(settings.seconds),
  };
  const writer = spawn(process.execPath, [join(import.meta.dirname, 'writer.ts'), JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const committed = new Map<number, number>();
  createInterface({ input: writer.stdout }).on('line', (line) => {
    const [number = 0, at = 0] = line.split(' ').map(Number);
    committed.set(number, at);
  });
  const begun = performance.now();
  const before = { seconds: processTime(service.pid) / 1000, ...memoryOf(service.pid) };
  const ended = once(writer, 'close');
  let isWriting = true;
  void ended.then(() => {
    isWriting = false;
  });
  const answered: number[] = [];
  while (isWriting) {
    const begin = performance.now();
    const response = await fetch(`${baseUrl}/changelog/${names[1] ?? busy}/changelogs`, {
      headers: { authorization: `Bearer ${bystanderToken || busyToken}` },
    });
    await response.arrayBuffer();
    answered.push(performance.now() - begin);
    await sleep(50);
  }
  const seconds = (performance.now() - begun) / 1_000;
  for (let waits = 0; seen.size < committed.size && waits < 100; waits += 1) await sleep(100);
  const after = { seconds: processTime(service.pid) / 1000, ...memoryOf(service.pid) };
  const latencies = [...committed].map(([number, at]) => (seen.get(number) ?? Number.POSITIVE_INFINITY) - at);
  process.stdout.write(
    `${JSON.stringify({
      changes: committed.size,
      perSecond: Math.round(committed.size / seconds),
      seen: seen.size,
      readers: names.length + readers - 1,
      latency: spread(latencies),
      bystander: spread(answered),
      serviceSeconds: after.seconds - before.seconds,
      serviceMiB: { before: before.now, after: after.now, peak: after.peak },
    })}\n`,
  );
} finally {
  service.process.kill('SIGKILL');
  await drop();
  await server.release();
}
process.exit();

/** Opens a stream and resolves once it has caught up. `times` gets the moment of each change. */
async function follow(tenant: string, token: string, times: Map<number, number> | undefined): Promise<void> {
  const response = await open(tenant, token);
  await once(response, 'data');
  if (times === undefined) {
    response.resume();
    return;
  }
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const now = clock();
    text += chunk;
    const end = text.lastIndexOf('\n\n');
    if (end === -1) return;
    for (const [, id] of text.slice(0, end).matchAll(/"entityId":"(\d+)"/g)) times.set(Number(id), now);
    text = text.slice(end);
  });
}

async function open(tenant: string, token: string): Promise<http.IncomingMessage> {
  const request = http.get(`${baseUrl}/changelog/${tenant}/feed?after=now`, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` },
    agent: false,
  });
  request.on('error', () => {});
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${tenant} answered ${response.statusCode}`);
  return response.on('error', () => {});
}
