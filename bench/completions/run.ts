import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort } from '../../src/postgres/embedded/server.ts';
import { printTable, quantile } from '../figures.ts';
import { processTime, serverTime } from '../processor-time.ts';
import { makeTenant, openBenchServer } from '../server.ts';
import { environmentOf, firstLineOf, type Service, startService, stop, tokenOf } from '../service.ts';
import { load, loadCalls, loadStreams, type Round, type StreamRound, type Target } from './load.ts';

// What a completion costs over the vendor called directly: Annals on a tenant's own token, Annals on the shared token
// with its durable quota, and a gateway that keeps nothing; in one run, in turn.
const { values: settings } = parseArgs({
  options: {
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    delays: { type: 'string', default: '0,20' },
    connections: { type: 'string', default: '1,16' },
    /** Streams of each target. */
    streams: { type: 'string', default: '100' },
    /** Calls of each operation between two looks at the memory; 0: none. */
    memory: { type: 'string', default: '18000' },
    /** The shared token as well. */
    shared: { type: 'boolean', default: false },
  },
});
/** Calls before the first look at the memory. */
const warmCalls = 2_000;
const gatewayFolder = join(import.meta.dirname, 'gateway');
const children: ChildProcess[] = [];
const messages = [
  { role: 'system', content: 'You answer in one sentence.' },
  { role: 'user', content: 'What is a change history good for?' },
];

/** What is measured. Milliseconds of processor time come from its process, and from the database if `isAnnals`. */
interface Contender extends Target {
  pid?: number | undefined;
  isAnnals?: boolean;
  memory?: Service['memory'];
}

interface Measured extends Round {
  process: number;
  database: number;
}

const server = await openBenchServer();
const { url, db, drop } = await server.create();
const clients = {
  benchown: await makeTenant(db, 'benchown'),
  ...(settings.shared ? { benchshared: await makeTenant(db, 'benchshared') } : {}),
};
try {
  installGateway();
  const rows: string[][] = [];
  const streamRows: string[][] = [];
  const memoryRows: string[][] = [];
  for (const delay of settings.delays.split(',')) rows.push(...(await measure(delay, { streamRows, memoryRows })));
  printTable(
    [
      ...['vendor answers after', 'connections', '', 'p50, ms', 'p99, ms', 'added p50, ms', '/ of the gateway'],
      ...['/ of a tenth', 'requests/s', 'process, ms a call', 'database, ms a call'],
    ],
    rows,
  );
  if (streamRows.length > 0) {
    const columns = ['first bytes, p50 ms', 'over the gateway, ms', 'chunk, p50 ms', 'added', '/ of the gateway'];
    printTable(['streams, 1 connection', ...columns], streamRows);
  }
  if (memoryRows.length > 0) {
    printTable(['memory after a collection', `after ${warmCalls} calls, MiB`, 'after the others', 'more'], memoryRows);
  }
} finally {
  for (const child of children) await stop(child);
  await drop();
  await server.release();
}

async function measure(
  delay: string,
  { streamRows, memoryRows }: Record<'streamRows' | 'memoryRows', string[][]>,
): Promise<string[][]> {
  const vendor = await start([join(import.meta.dirname, 'vendor.ts'), delay]);
  const targets: Contender[] = [direct(vendor), await throughGateway(vendor), ...(await throughAnnals(vendor))];
  const rows: string[][] = [];
  for (const connections of settings.connections.split(',').map(Number)) {
    const rounds = new Map<string, Measured[]>(targets.map(({ name }) => [name, []]));
    for (const target of targets) await load(target, connections, 1_000);
    for (let round = 0; round < Number(settings.rounds); round += 1) {
      // In another order each time, so that other work of the machine slows down all of them alike.
      const offset = round % targets.length;
      for (const target of [...targets.slice(offset), ...targets.slice(0, offset)]) {
        rounds.get(target.name)?.push(await measured(target, connections));
      }
    }
    const latencies = new Map([...rounds].map(([name, of]) => [name, of.flatMap((round) => round.latencies)]));
    const added = (name: string, share: number) =>
      quantile(latencies.get(name) ?? [], share) - quantile(latencies.get('vendor directly') ?? [], share);
    for (const [name, ofTarget] of rounds) {
      const own = latencies.get(name) ?? [];
      const sum = (of: (round: Measured) => number) => ofTarget.reduce((total, round) => total + of(round), 0);
      rows.push([
        `${delay} ms`,
        String(connections),
        name,
        quantile(own, 0.5).toFixed(2),
        quantile(own, 0.99).toFixed(2),
        added(name, 0.5).toFixed(2),
        ...[0.5, 0.1].map((share) => (added(name, share) / added('@portkey-ai/gateway', share)).toFixed(2)),
        (own.length / sum(({ seconds }) => seconds)).toFixed(0),
        (sum((round) => round.process) / own.length).toFixed(2),
        (sum((round) => round.database) / own.length).toFixed(3),
      ]);
    }
  }
  // The delay of the vendor changes neither.
  if (streamRows.length === 0 && Number(settings.streams) > 0) streamRows.push(...(await measureStreams(targets)));
  if (memoryRows.length === 0 && Number(settings.memory) > 0) memoryRows.push(...(await measureMemory(targets)));
  for (const child of children.splice(0).reverse()) await stop(child);
  return rows;
}

async function measureStreams(targets: readonly Contender[]): Promise<string[][]> {
  const passing = targets.filter((target) => target.url.endsWith('/chat/completions'));
  const rounds = new Map<string, StreamRound>(passing.map(({ name }) => [name, { first: [], chunks: [] }]));
  const count = 10;
  for (const target of passing) await loadStreams(target, count);
  for (let done = 0; done < Number(settings.streams); done += count) {
    const offset = (done / count) % passing.length;
    for (const target of [...passing.slice(offset), ...passing.slice(0, offset)]) {
      const { first, chunks } = await loadStreams(target, count);
      rounds.get(target.name)?.first.push(...first);
      rounds.get(target.name)?.chunks.push(...chunks);
    }
  }
  const p50 = (name: string, of: keyof StreamRound) => quantile(rounds.get(name)?.[of] ?? [], 0.5);
  const added = (name: string) => p50(name, 'chunks') - p50('vendor directly', 'chunks');
  return passing.map(({ name }) => [
    name,
    p50(name, 'first').toFixed(2),
    (p50(name, 'first') - p50('@portkey-ai/gateway', 'first')).toFixed(2),
    p50(name, 'chunks').toFixed(3),
    added(name).toFixed(3),
    (added(name) / added('@portkey-ai/gateway')).toFixed(2),
  ]);
}

async function measureMemory(targets: readonly Contender[]): Promise<string[][]> {
  const rows: string[][] = [];
  for (const { memory, ...target } of targets) {
    if (memory === undefined) continue;
    await loadCalls(target, warmCalls);
    const before = (await memory()) / 2 ** 20;
    await loadCalls(target, Number(settings.memory));
    const after = (await memory()) / 2 ** 20;
    rows.push([target.name, before.toFixed(1), after.toFixed(1), (after - before).toFixed(1)]);
  }
  return rows;
}

async function measured(target: Contender, connections: number): Promise<Measured> {
  const spent = async () => ({
    process: processTime(target.pid ?? 0),
    database: target.isAnnals ? serverTime(await server.postmaster()) : 0,
  });
  const before = await spent();
  const round = await load(target, connections, Number(settings.seconds) * 1_000);
  const after = await spent();
  return { ...round, process: after.process - before.process, database: after.database - before.database };
}

function direct(vendor: string): Target {
  return {
    name: 'vendor directly',
    url: `${vendor}/v1/chat/completions`,
    headers: { authorization: 'Bearer sk-bench' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', max_completion_tokens: 4_096, messages }),
  };
}

async function throughGateway(vendor: string): Promise<Contender> {
  const port = await freePort();
  const program = join(gatewayFolder, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');
  const child = spawn(process.execPath, [program, '--headless', `--port=${port}`], {
    // The gateway calls a host on loopback only if it is trusted by name.
    env: { PATH: process.env.PATH, TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' },
    stdio: 'ignore',
  });
  children.push(child);
  const baseUrl = `http://127.0.0.1:${port}`;
  for (let attempt = 0; !(await fetch(baseUrl).catch(() => undefined)); attempt += 1) {
    if (attempt === 100) throw new Error('the gateway does not answer');
    await sleep(100);
  }
  const target = direct(vendor);
  const headers = { ...target.headers, 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${vendor}/v1` };
  return { ...target, name: '@portkey-ai/gateway', pid: child.pid, url: `${baseUrl}/v1/chat/completions`, headers };
}

async function throughAnnals(vendor: string): Promise<Contender[]> {
  const {
    process: child,
    pid,
    baseUrl,
    memory,
  } = await startService(
    environmentOf(url, { OPENAI_BASE_URL: `${vendor}/v1`, ANNALS_SHARED_PROVIDER_TOKEN: 'sk-bench' }),
  );
  children.push(child);
  const targets: Contender[] = [];
  for (const [tenant, client] of Object.entries(clients)) {
    const headers = { authorization: `Bearer ${await tokenOf(baseUrl, client)}` };
    const name = `Annals, ${tenant.replace('bench', '')} token`;
    if (tenant === 'benchown') {
      await fetch(`${baseUrl}/configuration/${tenant}/configurations`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify([{ key: 'providerApiToken', value: 'sk-bench' }]),
      });
    }
    const target = { pid, isAnnals: true, memory, headers };
    const openai = { url: `${baseUrl}/openai/${tenant}/v1/chat/completions`, name: `${name}, /openai` };
    targets.push({ ...target, ...openai, body: JSON.stringify({ model: 'gpt-5.4-mini', messages }) });
    const own = { url: `${baseUrl}/ai-service/${tenant}/completions`, name };
    targets.push({ ...target, ...own, body: JSON.stringify({ messages }) });
  }
  return targets;
}

function installGateway(): void {
  if (existsSync(join(gatewayFolder, 'node_modules'))) return;
  console.error('installing the gateway …');
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock'], {
    cwd: gatewayFolder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error('the gateway could not be installed');
}

/** Starts a script and returns its first line. */
async function start(args: string[]): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return await firstLineOf(child);
}
