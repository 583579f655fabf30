import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledQuery } from 'kysely';
import type { Database } from '../../../src/postgres/database.ts';
import { givePositions, type PlaceOfPosition, readPlaces } from '../../../src/recording/positions.ts';
import { Random } from '../oracle/random.ts';
import type { Committed, RecorderTask } from './position-recorder.ts';
import { startScript } from './script.ts';

export interface PositionLaw {
  url: string;
  db: Database;
  tenant: string;
  seed: number;
  recorders: number;
  /** Of each recorder. One that was killed starts over. */
  transactions: number;
  maxDelay: number;
  maxChanges: number;
  /** Changes of imports, one after another beside the recorders. */
  imports: readonly number[];
  /** Processes that are killed, recorders, imports and givers in turn. */
  kills: number;
  /** Called beside the kills, with their number so far. */
  onKill?: (kills: number) => Promise<void>;
}

export interface LawOutcome {
  positions: number;
  /** Transactions whose commit was acknowledged. */
  committed: number;
  kills: number;
  /** What contradicts the law; empty where it holds. */
  faults: string[];
}

const givers = 2;

/**
 * Recorders with delays, rollbacks and savepoints, imports, and two processes that give positions and fold, some of
 * which are killed with SIGKILL. At the end: positions are dense, each entry has one, a reader that read on has seen
 * exactly that, and a transaction that began after another one's commit comes later.
 */
export async function runPositionLaw(law: PositionLaw): Promise<LawOutcome> {
  const random = new Random(law.seed);
  const committed: Committed[] = [];
  const living = new Set<ChildProcess>();
  let seeds = law.seed % 1_000_000;
  let isOver = false;

  function start(script: string, args: string[]): { child: ChildProcess; ended: Promise<boolean> } {
    const child = startScript(script, args, ['ignore', 'pipe', 'inherit']);
    living.add(child);
    if (child.stdout === null) throw new Error('the script has no stdout');
    createInterface({ input: child.stdout }).on('line', (line) => {
      // The line of a process that is killed may be cut.
      if (line.endsWith('}')) committed.push(JSON.parse(line));
    });
    const ended = once(child, 'close').then(([code]) => {
      living.delete(child);
      return code === 0;
    });
    return { child, ended };
  }

  async function recorder(imported?: number): Promise<void> {
    for (;;) {
      seeds += 1;
      const task: RecorderTask = { ...law, seed: seeds, ...(imported === undefined ? {} : { imported }) };
      const { url, tenant, seed, transactions, maxDelay, maxChanges } = task;
      const argument = { url, tenant, seed, transactions, maxDelay, maxChanges, imported };
      if (await start('position-recorder.ts', [JSON.stringify(argument)]).ended) return;
    }
  }

  async function giver(): Promise<void> {
    while (!isOver) await start('position-giver.ts', [law.url, law.tenant]).ended;
  }

  const read: PlaceOfPosition[] = [];
  async function readOn(): Promise<void> {
    while (!isOver) {
      const places = await readPlaces(law.db, law.tenant, read.length, 1 + random.below(5_000)).catch(() => []);
      read.push(...places);
      await sleep(random.below(20));
    }
  }

  let kills = 0;
  async function kill(): Promise<void> {
    while (kills < law.kills && !isOver) {
      await sleep(50 + random.below(150));
      const children = [...living];
      if (children.length > 0) random.pick(children).kill('SIGKILL');
      kills += 1;
      await law.onKill?.(kills);
    }
  }

  const recording = Promise.all([
    ...Array.from({ length: law.recorders }, () => recorder()),
    (async () => {
      for (const imported of law.imports) await recorder(imported);
    })(),
  ]);
  const giving = Array.from({ length: givers }, giver);
  const reading = readOn();
  const killing = kill();
  await recording;
  await killing;
  isOver = true;
  for (const child of living) child.kill('SIGKILL');
  await Promise.all([...giving, reading]);
  // The server may still roll back what a killed process had begun.
  while ((await givePositions(law.db, law.tenant)) > 0 || (await unnumbered(law)) > 0) await sleep(20);
  for (;;) {
    const places = await readPlaces(law.db, law.tenant, read.length);
    if (places.length === 0) break;
    read.push(...places);
  }
  return { positions: read.length, committed: committed.length, kills, faults: await faultsOf(law, read, committed) };
}

async function query<Row>({ db }: PositionLaw, text: string, parameters: unknown[]): Promise<Row[]> {
  return (await db.executeQuery<Row>(CompiledQuery.raw(text, parameters))).rows;
}

async function unnumbered(law: PositionLaw): Promise<number> {
  return (await query(law, 'select from change_delta where tenant = $1 and position is null', [law.tenant])).length;
}

async function faultsOf(
  law: PositionLaw,
  read: readonly PlaceOfPosition[],
  committed: readonly Committed[],
): Promise<string[]> {
  const faults: string[] = [];
  const gap = read.findIndex(({ position }, index) => position !== index + 1);
  if (gap !== -1) faults.push(`position ${read[gap]?.position} comes as number ${gap + 1}`);
  const entries = await query<{ key: string; identity: string }>(
    law,
    `select at || ' ' || sequence as key, replace(identity::text, '-', '') as identity from change_entry where tenant = $1`,
    [law.tenant],
  );
  const positions = new Map(read.map(({ at, sequence, position }) => [`${at} ${sequence}`, position]));
  if (positions.size !== read.length) faults.push('an entry has two positions');
  if (positions.size !== entries.length) faults.push(`${entries.length} entries, ${positions.size} positions`);
  const ofIdentity = new Map(entries.map(({ key, identity }) => [identity, positions.get(key)]));
  for (const [identity, position] of ofIdentity) if (position === undefined) faults.push(`${identity} has no position`);
  faults.push(...faultsOfOrder(committed, ofIdentity));
  return faults.slice(0, 10);
}

/** Transactions that began after another one's commit, and stand before it. */
function faultsOfOrder(committed: readonly Committed[], ofIdentity: ReadonlyMap<string, number | undefined>): string[] {
  const spans = committed
    .filter(({ identities }) => identities.length > 0)
    .map(({ began, ended, identities }) => {
      const positions = identities.map((identity) => ofIdentity.get(identity) ?? Number.NaN);
      const isOrdered = positions.every((position, index) => index === 0 || position > (positions[index - 1] ?? 0));
      return { began: BigInt(began), ended: BigInt(ended), first: positions[0], last: positions.at(-1), isOrdered };
    });
  const faults = spans
    .filter(({ isOrdered }) => !isOrdered)
    .map(({ first }) => `the transaction of ${first} has lost its order`);
  const byEnd = spans.toSorted((one, other) => (one.ended < other.ended ? -1 : 1));
  let passed = 0;
  let last = 0;
  for (const span of spans.toSorted((one, other) => (one.began < other.began ? -1 : 1))) {
    for (let before = byEnd[passed]; before !== undefined && before.ended < span.began; before = byEnd[passed]) {
      last = Math.max(last, before.last ?? 0);
      passed += 1;
    }
    if (!((span.first ?? 0) > last)) faults.push(`${span.first} began after the commit of ${last}`);
  }
  return faults;
}
