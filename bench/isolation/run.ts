import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRecorder } from '../../src/recording/record-change.ts';
import { printTable } from '../figures.ts';
import { memoryOf } from '../processor-time.ts';
import { makeTenant, openBenchServer } from '../server.ts';
import { environmentOf, type Service, startService, stop, tokenOf } from '../service.ts';
import { type Attack, changesOf } from './attacks/attack.ts';
import type { Seen } from './bystander.ts';

// What a bystander sees during attacks, beside what it sees without them, in one run.
const { values: settings, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '15' },
    idle: { type: 'string', default: '10' },
    attackers: { type: 'string', default: '1' },
    elsewhere: { type: 'boolean', default: false },
  },
});
const here = import.meta.dirname;
const parts = new Set(['attack', 'own-model']);
const known = (await readdir(join(here, 'attacks')))
  .map((file) => file.replace('.ts', ''))
  .filter((name) => !parts.has(name));
const chosen = positionals.length > 0 ? positionals : known;
const children: ChildProcess[] = [];

interface Row {
  attack: Attack;
  idle: Seen;
  attacked: Seen;
  /** MiB. */
  memory: { before: number; maximum: number };
  /** Milliseconds of processor time. */
  maxTurn: { before: number; attacked: number };
  /** Milliseconds after the attackers left until no statement of a service ran. */
  quiet: number;
  counts: Record<string, number>;
}

const rows: Row[] = [];
const loadBefore = load();
const server = await openBenchServer();
const { url, pool, db, drop } = await server.create();
try {
  for (const name of chosen) {
    const row = await measure(name);
    rows.push(row);
    printRow(row);
    // An interrupted run has printed what it measured.
    console.log(cellsOf(row).join(' | '));
  }
} finally {
  for (const child of children) await stop(child);
  await drop();
  await server.release();
}
printAll(rows.toSorted((a, b) => a.attack.row - b.attack.row));

async function measure(name: string): Promise<Row> {
  const { attack }: { attack: Attack } = await import(`./attacks/${name}.ts`);
  const service = await start();
  const own = settings.elsewhere ? await start() : service;
  const bystander = await startBystander(own, `by${rows.length}`);
  const attackers = await startAttackers(service, attack, name);
  // A first round warms caches and compiled code, as in a service that has been at work for a while.
  await watch(bystander, 3);
  await maxTurnOf(service, own);
  const memoryBefore = sampleMemory(service);
  const idle = await watch(bystander, Number(settings.idle));
  const before = { memory: await memoryBefore.end(), turn: await maxTurnOf(service, own) };

  const memoryAttacked = sampleMemory(service);
  attackers.send('begin');
  const attacked = await watch(bystander, secondsOf(attack));
  const turn = await maxTurnOf(service, own);
  const counts = await answerOf<Record<string, number>>(attackers, 'end');
  await stop(attackers);
  const quiet = await untilQuiet();
  const maximum = await memoryAttacked.end();
  await stop(bystander);
  for (const each of new Set([service, own])) await each.stop();
  return {
    attack,
    idle,
    attacked,
    memory: { before: before.memory, maximum },
    maxTurn: { before: before.turn, attacked: turn },
    quiet,
    counts,
  };
}

async function start(): Promise<Service> {
  const { SERVICE_NODE_OPTIONS: NODE_OPTIONS = '', SERVICE_LOG_LEVEL: LOG_LEVEL = 'silent' } = process.env;
  return await startService(environmentOf(url, { ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8', NODE_OPTIONS, LOG_LEVEL }));
}

/** The peak of the service's resident memory (MiB) from now on. */
function sampleMemory({ pid }: Service): { end(): Promise<number> } {
  let isOver = false;
  const sampled = (async () => {
    let maximum = 0;
    for (; !isOver; await sleep(50)) maximum = Math.max(maximum, memoryOf(pid).now);
    return maximum;
  })();
  return {
    end() {
      isOver = true;
      return sampled;
    },
  };
}

async function startBystander(service: Service, tenant: string): Promise<ChildProcess> {
  const client = await makeTenant(db, tenant);
  await createRecorder(db, tenant, () => Date.now())(changesOf(2_000));
  const args = [service.baseUrl, tenant, await tokenOf(service.baseUrl, client), client.clientId, client.clientSecret];
  return await startChild('bystander.ts', args);
}

async function startAttackers(service: Service, attack: Attack, name: string): Promise<ChildProcess> {
  const tenants: string[] = [];
  for (let number = 0; number < Number(settings.attackers); number += 1) {
    const tenant = `att${rows.length}x${number}`;
    const client = await makeTenant(db, tenant);
    await attack.fill?.(db, tenant);
    tenants.push(`${tenant}=${await tokenOf(service.baseUrl, client)}`);
  }
  return await startChild('attackers.ts', [service.baseUrl, name, ...tenants]);
}

async function startChild(file: string, args: readonly string[]): Promise<ChildProcess> {
  const child = fork(join(here, file), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  children.push(child);
  await once(child, 'message');
  return child;
}

async function answerOf<Answer>(child: ChildProcess, message: string | object): Promise<Answer> {
  child.send(message);
  const [answer] = await once(child, 'message');
  return answer as Answer;
}

function secondsOf(attack: Attack): number {
  return attack.seconds ?? Number(settings.seconds);
}

function watch(bystander: ChildProcess, seconds: number): Promise<Seen> {
  return answerOf<Seen>(bystander, { seconds });
}

async function maxTurnOf(...services: readonly Service[]): Promise<number> {
  return Math.max(...(await Promise.all([...new Set(services)].map((service) => service.maxTurn()))));
}

/** Milliseconds until no statement of a service runs. */
async function untilQuiet(): Promise<number> {
  const begun = performance.now();
  const running = "select from pg_stat_activity where application_name = 'annals' and state <> 'idle'";
  while ((await pool.query(running)).rows.length > 0 && performance.now() - begun < 60_000) await sleep(20);
  return performance.now() - begun;
}

function printRow({ attack, attacked, counts }: Row): void {
  console.log(`\n${attack.row} ${attack.title}: ${JSON.stringify(counts)}`);
  for (const [fault, count] of Object.entries(attacked.faults)) console.log(`  ${count} x ${fault}`);
}

function printAll(measured: readonly Row[]): void {
  console.log(
    `\n${settings.attackers} attacker(s), the bystander in ${settings.elsewhere ? 'another' : 'the same'} process; idle → attacked; ` +
      `${settings.idle} s and ${settings.seconds} s; the machine's load was ${loadBefore} before and ${load()} after\n`,
  );
  const milliseconds = ['p50', 'p95', 'p99', 'worst'].map((name) => `${name} ms`);
  const head = ['attack', 'calls', ...milliseconds, 'errors', 'chat begins ms', 'export done ms', 'memory MiB'];
  printTable([...head, 'longest turn ms', 'database quiet after ms', 'holds'], measured.map(cellsOf));
}

function cellsOf(row: Row): string[] {
  const { attack, idle, attacked, memory, maxTurn, quiet } = row;
  const beside = (of: (seen: Seen) => number | null) => `${shown(of(idle))} → ${shown(of(attacked))}`;
  return [
    `${attack.row} ${attack.title}`,
    beside(({ calls }) => calls),
    beside(({ p50 }) => p50),
    beside(({ p95 }) => p95),
    beside(({ p99 }) => p99),
    beside(({ worst }) => worst),
    beside(({ errors }) => errors),
    beside(({ chatBegins }) => chatBegins),
    beside(({ exportDone }) => exportDone),
    `${shown(memory.before)} → ${shown(memory.maximum)}`,
    `${shown(maxTurn.before)} → ${shown(maxTurn.attacked)}`,
    shown(quiet),
    faultsOf(row).join(', ') || 'yes',
  ];
}

/** The criteria that do not hold. */
function faultsOf({ attack, idle, attacked, memory, quiet, counts }: Row): string[] {
  const own = attack.fault?.(counts, secondsOf(attack), Number(settings.attackers));
  return [
    ...(own === undefined ? [] : [own]),
    ...(attacked.errors > 0 ? ['errors'] : []),
    ...(attacked.p99 > Math.max(100, 10 * idle.p99) ? ['p99'] : []),
    ...((attacked.chatBegins ?? Number.POSITIVE_INFINITY) > 2_000 ? ['chat'] : []),
    ...((attacked.exportDone ?? Number.POSITIVE_INFINITY) > 2_000 ? ['export'] : []),
    ...(memory.maximum - memory.before > 256 ? ['memory'] : []),
    ...(quiet > 1_000 ? ['quiet'] : []),
  ];
}

/** The machine's load average over the last minute. */
function load(): string {
  return loadavg()[0]?.toFixed(1) ?? '';
}

function shown(value: number | null): string {
  if (value === null) return 'none';
  return value >= 10 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
}
