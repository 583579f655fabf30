import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { tokenOf } from '../access-token.ts';
import { durableWrites } from './disk.ts';
import { load, quantile, type Round, type Target } from './load.ts';
import { databaseTime, processTime } from './processor-time.ts';

// What a completion costs over the vendor called directly: Annals on a tenant's own token, Annals on the shared token
// with its quota kept durable, and a gateway that keeps nothing; side by side in one run, in turn.
const { values: settings } = parseArgs({
  options: {
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    delays: { type: 'string', default: '0,20' },
    connections: { type: 'string', default: '1,16' },
    /** Streams of chat completions: the latency is that of the first text. */
    streams: { type: 'boolean', default: false },
    /** The shared token too. */
    shared: { type: 'boolean', default: false },
    /** Another checkout of Annals to measure beside this one. */
    beside: { type: 'string' },
  },
});
const here = import.meta.dirname;
const gatewayFolder = join(here, 'gateway');
const children: ChildProcess[] = [];
/** Milliseconds that the disk took to keep 8 KiB, all through the run. */
const disk: number[] = [];
/** What the contenders used while nothing was asked of any. */
const idle: { name: string; used: ProcessorTime }[] = [];
const folder = await mkdtemp(join(tmpdir(), 'annals-bench-'));
// The account of the embedded server enters it too, so that TMPDIR says which disk the databases are on.
await chmod(folder, 0o755);
const checkouts = [checkoutAt(join(here, '..', '..'), 'Annals')];
if (settings.beside !== undefined) checkouts.push(checkoutAt(settings.beside, 'The other Annals'));

const streamed = settings.streams ? { stream: true, stream_options: { include_usage: true } } : {};
const messages = [
  { role: 'system', content: 'You answer in one sentence.' },
  { role: 'user', content: 'What is a change history good for?' },
];

try {
  installGateway();
  const rows: Row[] = [];
  for (const delay of settings.delays.split(',')) rows.push(...(await measure(delay)));
  print(rows);
  for (const [name, ofOne] of Map.groupBy(idle, (one) => one.name)) {
    const mean = (part: keyof ProcessorTime) => ofOne.reduce((sum, { used }) => sum + used[part], 0) / ofOne.length;
    const [ofProcess, ofDatabase] = [mean('process').toFixed(1), mean('database').toFixed(1)];
    console.log(
      `\n${name}, asked nothing: ${ofProcess} ms of the process and ${ofDatabase} ms of the database a second`,
    );
  }
  console.log(
    `\n8 KiB made durable on this disk, in the same run: p50 ${quantile(disk, 0.5).toFixed(2)} ms, p99 ${quantile(disk, 0.99).toFixed(2)} ms`,
  );
} finally {
  for (const child of children) await stop(child);
  await rm(folder, { recursive: true, force: true });
}

function checkoutAt(root: string, name: string): Checkout {
  return { name, launcher: join(root, 'bin', 'annals.js'), dataFolder: join(folder, name.replaceAll(' ', '-')) };
}

interface Row {
  delay: string;
  connections: number;
  name: string;
  /** A tenth of the calls took less. */
  p10: number;
  p50: number;
  p99: number;
  perSecond: number;
  /** Milliseconds of processor time for a call. */
  used: ProcessorTime;
}

/** Milliseconds of processor time of what is measured, and of its database; 0 where there is none. */
interface ProcessorTime {
  process: number;
  database: number;
}

interface Measured extends Round {
  used: ProcessorTime;
}

/** An Annals that is measured, with a database of its own. */
interface Checkout {
  name: string;
  launcher: string;
  dataFolder: string;
}

/** What is measured: its process, and the data folder of its database. */
interface Contender extends Target {
  pid?: number | undefined;
  dataFolder?: string;
}

async function measure(delay: string): Promise<Row[]> {
  const vendor = await start([join(here, 'vendor.ts'), delay]);
  const targets: Contender[] = [direct(vendor.line), throughGateway(await startGateway(), vendor.line)];
  for (const checkout of checkouts) targets.push(...(await throughAnnals(checkout, vendor.line)));
  const rows: Row[] = [];
  for (const connections of settings.connections.split(',').map(Number)) {
    const rounds = new Map<string, Measured[]>(targets.map(({ name }) => [name, []]));
    for (const target of targets) await load(target, connections, 1_000);
    for (let round = 0; round < Number(settings.rounds); round += 1) {
      disk.push(...durableWrites(folder, 20));
      idle.push(...(await idleOf(targets)));
      // In another order each time, so that other work of the machine slows down all of them alike.
      for (const target of rotated(targets, round)) {
        rounds.get(target.name)?.push(await measured(target, connections));
      }
    }
    for (const [name, ofTarget] of rounds) {
      const latencies = ofTarget.flatMap((one) => one.latencies);
      const seconds = ofTarget.reduce((sum, one) => sum + one.seconds, 0);
      const used = (part: keyof ProcessorTime) =>
        ofTarget.reduce((sum, one) => sum + one.used[part], 0) / latencies.length;
      rows.push({
        delay,
        connections,
        name,
        p10: quantile(latencies, 0.1),
        p50: quantile(latencies, 0.5),
        p99: quantile(latencies, 0.99),
        perSecond: latencies.length / seconds,
        used: { process: used('process'), database: used('database') },
      });
    }
  }
  for (const child of children.splice(0).reverse()) await stop(child);
  return rows;
}

async function measured(target: Contender, connections: number): Promise<Measured> {
  const before = await usedBy(target);
  const round = await load(target, connections, Number(settings.seconds) * 1_000);
  const after = await usedBy(target);
  return { ...round, used: difference(after, before) };
}

/** Of each process once, in a second. */
async function idleOf(targets: readonly Contender[]): Promise<typeof idle> {
  const processes = [...new Map(targets.map((target) => [target.pid, target])).values()].filter(({ pid }) => pid);
  const before = await Promise.all(processes.map(usedBy));
  await sleep(1_000);
  const after = await Promise.all(processes.map(usedBy));
  return processes.map(({ name }, index) => ({ name, used: difference(after[index], before[index]) }));
}

function difference(after: ProcessorTime | undefined, before: ProcessorTime | undefined): ProcessorTime {
  const of = (part: keyof ProcessorTime) => (after?.[part] ?? 0) - (before?.[part] ?? 0);
  return { process: of('process'), database: of('database') };
}

async function usedBy({ pid, dataFolder }: Contender): Promise<ProcessorTime> {
  return {
    process: pid === undefined ? 0 : processTime(pid),
    database: dataFolder === undefined ? 0 : await databaseTime(dataFolder),
  };
}

function direct(vendor: string): Target {
  return {
    name: 'vendor directly',
    url: `${vendor}/v1/chat/completions`,
    headers: { authorization: 'Bearer sk-bench' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', max_completion_tokens: 4_096, messages, ...streamed }),
  };
}

function throughGateway({ pid, line }: Started, vendor: string): Contender {
  const target = direct(vendor);
  return {
    ...target,
    pid,
    name: '@portkey-ai/gateway',
    url: `${line}/v1/chat/completions`,
    headers: { ...target.headers, 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${vendor}/v1` },
  };
}

async function throughAnnals(checkout: Checkout, vendor: string): Promise<Contender[]> {
  const { pid, line: baseUrl } = await startAnnals(checkout, vendor);
  const targets: Contender[] = [];
  for (const [tenant, name] of [
    ['benchown', `${checkout.name}, own token`],
    ['benchshared', `${checkout.name}, shared token`],
  ] as const) {
    const token = await tokenOfTenant(checkout, baseUrl, tenant);
    if (tenant === 'benchown') await setOwnToken(baseUrl, tenant, token);
    const target = { pid, dataFolder: checkout.dataFolder, headers: { authorization: `Bearer ${token}` } };
    targets.push({
      ...target,
      name: `${name}, /openai`,
      url: `${baseUrl}/openai/${tenant}/v1/chat/completions`,
      body: JSON.stringify({ model: 'gpt-5.4-mini', messages, ...streamed }),
    });
    if (settings.streams) continue;
    targets.push({
      ...target,
      name,
      url: `${baseUrl}/ai-service/${tenant}/completions`,
      body: JSON.stringify({ messages }),
    });
  }
  return targets.filter(({ name }) => settings.shared || !name.includes('shared'));
}

/** A token of a new client of a new tenant. */
async function tokenOfTenant(checkout: Checkout, baseUrl: string, tenant: string): Promise<string> {
  const scope = 'ai.completion_manage configuration.configuration_manage';
  annals(checkout, ['tenant', 'create', tenant]);
  const client = annals(checkout, ['client', 'create', '--tenant', tenant, '--scope', scope]);
  return await tokenOf(baseUrl, JSON.parse(client));
}

async function setOwnToken(baseUrl: string, tenant: string, token: string): Promise<void> {
  await fetch(`${baseUrl}/configuration/${tenant}/configurations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify([{ key: 'providerApiToken', value: 'sk-bench' }]),
  });
}

function environment(more: Record<string, string> = {}): Record<string, string | undefined> {
  return { PATH: process.env.PATH, LOG_LEVEL: 'warn', ...more };
}

function annals({ launcher, dataFolder }: Checkout, args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [launcher, ...args], {
    env: environment({ ANNALS_DATA_DIR: dataFolder }),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

async function startAnnals({ launcher, dataFolder }: Checkout, vendor: string): Promise<Started> {
  return await start([launcher, 'serve'], {
    PORT: '0',
    ANNALS_DATA_DIR: dataFolder,
    OPENAI_BASE_URL: `${vendor}/v1`,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-bench',
  });
}

async function startGateway(): Promise<Started> {
  const port = await freePort();
  const server = join(gatewayFolder, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');
  // It asks that a host on loopback be trusted by name.
  const trusted = { TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' };
  const child = spawn(process.execPath, [server, '--headless', `--port=${port}`], {
    env: environment(trusted),
    stdio: 'ignore',
  });
  children.push(child);
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const answered = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (answered) return { pid: child.pid, line: `http://127.0.0.1:${port}` };
    await sleep(100);
  }
  throw new Error('the gateway does not answer');
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

/** A process, and the first line that it has written. */
interface Started {
  pid: number | undefined;
  line: string;
}

async function start(args: string[], more: Record<string, string> = {}): Promise<Started> {
  const child = spawn(process.execPath, args, { env: environment(more), stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) return { pid: child.pid, line };
  throw new Error(`${args.join(' ')} ended`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const offset = by % items.length;
  return [...items.slice(offset), ...items.slice(0, offset)];
}

function print(rows: readonly Row[]): void {
  console.log(
    '| vendor answers after | connections | | p50 ms | p99 ms | added p50 | of the gateway | of a tenth | requests/s | process, ms a call | database, ms a call |',
  );
  console.log('|---|---|---|---|---|---|---|---|---|---|---|');
  for (const row of rows) {
    const added = (of: string, share: 'p10' | 'p50') => {
      const beside = (name: string) =>
        rows.find((one) => one.name === name && one.delay === row.delay && one.connections === row.connections);
      return (beside(of)?.[share] ?? Number.NaN) - (beside('vendor directly')?.[share] ?? Number.NaN);
    };
    const ofGateway = (share: 'p10' | 'p50') => added(row.name, share) / added('@portkey-ai/gateway', share);
    const cells = [
      `${row.delay} ms`,
      row.connections,
      row.name,
      row.p50.toFixed(2),
      row.p99.toFixed(2),
      added(row.name, 'p50').toFixed(2),
      ofGateway('p50').toFixed(2),
      ofGateway('p10').toFixed(2),
      row.perSecond.toFixed(0),
      row.used.process.toFixed(2),
      row.used.database.toFixed(3),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}
