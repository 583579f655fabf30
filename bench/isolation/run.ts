import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRecorder } from '../../src/recording/record-change.ts';
import type { Attack } from './attacks/attack.ts';
import type { Seen } from './bystander.ts';
import { changesOf } from './changes.ts';
import { maxOf } from './figures.ts';
import { MemorySampler } from './memory-sampler.ts';
import { openWorld, type Service, stop, type World } from './world.ts';

// What a bystander sees while others attack, beside what it sees without them, in one run.
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
const parts = new Set(['attack', 'own-agent', 'own-model']);
const known = (await readdir(join(here, 'attacks')))
  .map((file) => file.replace('.ts', ''))
  .filter((name) => !parts.has(name));
const asked = positionals.length > 0 ? positionals : known;
const children: ChildProcess[] = [];

interface Row {
  attack: Attack;
  idle: Seen;
  attacked: Seen;
  /** MiB. */
  memory: { before: number; most: number };
  /** Milliseconds of processor time. */
  maxTurn: { before: number; attacked: number };
  /** Milliseconds after the attackers left until no statement of theirs ran. */
  quiet: number;
  counts: Record<string, number>;
}

const rows: Row[] = [];
const loadBefore = load();
const world = await openWorld();
try {
  for (const name of asked) {
    const row = await measure(world, name);
    rows.push(row);
    printRow(row);
    // A run that is cut off has told what it measured.
    console.log(lineOf(row));
  }
} finally {
  for (const child of children) await stop(child);
  await world.close();
}
printTable(rows.toSorted((one, other) => one.attack.row - other.attack.row));

async function measure(place: World, name: string): Promise<Row> {
  const { attack }: { attack: Attack } = await import(`./attacks/${name}.ts`);
  const service = await place.startService();
  const own = settings.elsewhere ? await place.startService() : service;
  const bystander = await startBystander(place, own, `by${rows.length}`);
  const attackers = await startAttackers(place, service, attack, name);
  // A first round warms caches and compiled code, as in a service that has been at work for a while.
  await watch(bystander, 3);
  await maxTurnOf(service, own);
  const memoryBefore = new MemorySampler(service);
  const idle = await watch(bystander, Number(settings.idle));
  const before = { memory: await memoryBefore.end(), turn: await maxTurnOf(service, own) };

  const memoryAttacked = new MemorySampler(service);
  attackers.send('begin');
  const attacked = await watch(bystander, secondsOf(attack));
  const turn = await maxTurnOf(service, own);
  const counts = await answerOf<Record<string, number>>(attackers, 'end');
  await stop(attackers);
  const quiet = await untilQuiet(place);
  const most = await memoryAttacked.end();
  await stop(bystander);
  for (const one of new Set([service, own])) await one.stop();
  return {
    attack,
    idle,
    attacked,
    memory: { before: before.memory, most },
    maxTurn: { before: before.turn, attacked: turn },
    quiet,
    counts,
  };
}

async function startBystander(place: World, service: Service, tenant: string): Promise<ChildProcess> {
  const client = await place.makeTenant(tenant);
  await createRecorder(place.db, tenant, () => Date.now())(changesOf(2_000));
  const args = [service.baseUrl, tenant, await service.tokenOf(client), client.clientId, client.clientSecret];
  return await startChild('bystander.ts', args);
}

async function startAttackers(place: World, service: Service, attack: Attack, name: string): Promise<ChildProcess> {
  const tenants: string[] = [];
  for (let number = 0; number < Number(settings.attackers); number += 1) {
    const tenant = `att${rows.length}x${number}`;
    const client = await place.makeTenant(tenant);
    await attack.fill?.(place.db, tenant);
    tenants.push(`${tenant}=${await service.tokenOf(client)}`);
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
  return maxOf(await Promise.all([...new Set(services)].map((service) => service.maxTurn())));
}

async function untilQuiet(place: World): Promise<number> {
  const begun = performance.now();
  while ((await place.busy()) > 0 && performance.now() - begun < 60_000) await sleep(20);
  return performance.now() - begun;
}

function printRow({ attack, attacked, counts }: Row): void {
  console.log(`\n${attack.row} ${attack.title}: ${JSON.stringify(counts)}`);
  for (const [fault, count] of Object.entries(attacked.faults)) console.log(`  ${count} x ${fault}`);
}

function printTable(measured: readonly Row[]): void {
  const head = [
    'attack',
    'calls',
    'p50 ms',
    'p95 ms',
    'p99 ms',
    'worst ms',
    'errors',
    'chat begins ms',
    'export done ms',
    'memory MiB',
    'longest turn ms',
    'database quiet after ms',
    'holds',
  ];
  console.log(
    `\n${settings.attackers} attacker(s), the bystander in ${settings.elsewhere ? 'another' : 'the same'} process; idle → attacked; ` +
      `${settings.idle} s and ${settings.seconds} s; the machine's load was ${loadBefore} before and ${load()} after\n`,
  );
  console.log(`| ${head.join(' | ')} |\n|${'---|'.repeat(head.length)}`);
  for (const row of measured) console.log(lineOf(row));
}

function lineOf(row: Row): string {
  const { attack, idle, attacked, memory, maxTurn, quiet } = row;
  const beside = (of: (seen: Seen) => number | null) => `${shown(of(idle))} → ${shown(of(attacked))}`;
  const cells = [
    `${attack.row} ${attack.title}`,
    beside(({ calls }) => calls),
    beside(({ p50 }) => p50),
    beside(({ p95 }) => p95),
    beside(({ p99 }) => p99),
    beside(({ worst }) => worst),
    beside(({ errors }) => errors),
    beside(({ chatBegins }) => chatBegins),
    beside(({ exportDone }) => exportDone),
    `${shown(memory.before)} → ${shown(memory.most)}`,
    `${shown(maxTurn.before)} → ${shown(maxTurn.attacked)}`,
    shown(quiet),
    faultsOf(row).join(', ') || 'yes',
  ];
  return `| ${cells.join(' | ')} |`;
}

/** Which of the criteria does not hold. */
function faultsOf({ attack, idle, attacked, memory, quiet, counts }: Row): string[] {
  const own = attack.fault?.(counts, secondsOf(attack), Number(settings.attackers));
  return [
    ...(own === undefined ? [] : [own]),
    ...(attacked.errors > 0 ? ['errors'] : []),
    ...(attacked.p99 > Math.max(100, 10 * idle.p99) ? ['p99'] : []),
    ...((attacked.chatBegins ?? Number.POSITIVE_INFINITY) > 2_000 ? ['chat'] : []),
    ...((attacked.exportDone ?? Number.POSITIVE_INFINITY) > 2_000 ? ['export'] : []),
    ...(memory.most - memory.before > 256 ? ['memory'] : []),
    ...(quiet > 1_000 ? ['quiet'] : []),
  ];
}

/** Of the last minute, with all that runs on the machine. */
function load(): string {
  return loadavg()[0]?.toFixed(1) ?? '';
}

function shown(value: number | null): string {
  if (value === null) return 'none';
  return value >= 10 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
}
