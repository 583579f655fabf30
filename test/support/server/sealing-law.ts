import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Database } from '../../../src/postgres/database.ts';
import { parseCheckpoint } from '../../../src/proof/log/checkpoint.ts';
import { hashOfLeaf, leavesOf, readLeaves, readTreeSize } from '../../../src/proof/log/leaf-store.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { MerkleFold } from '../../../src/proof/log/merkle.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { openSigner } from '../../../src/proof/log/signer.ts';
import { givePositions, lastPosition } from '../../../src/recording/positions.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import type { Random } from '../oracle/random.ts';
import { changeOf } from './history.ts';
import { startScript } from './script.ts';

export interface SealingLaw {
  url: string;
  db: Database;
  tenant: string;
  keyFile: string;
  /** How often a process that seals is killed. */
  kills: number;
  random: Random;
  /** Called after each kill. */
  onKill?: (kills: number) => Promise<void>;
}

/**
 * Two processes with one key seal a history while it grows, and are killed at random moments. A witness keeps every
 * checkpoint that was published, or was in the file beside the key. Returns what is wrong: a checkpoint of another tree
 * than the one that there is at the end, or a second log.
 */
export async function runSealingLaw({ url, db, tenant, keyFile, kills, random, onKill }: SealingLaw) {
  const seen = new Map<string, string>();
  const faults: string[] = [];
  let isOver = false;
  const start = (): ChildProcess => startScript('sealer-process.ts', [url, tenant, keyFile], 'ignore');
  const record = createRecorder(db, tenant, () => Date.now());
  const signer = openSigner(keyFile, 'annals.example');

  async function witness(): Promise<void> {
    const { rows } = await sql<{ origin: string; checkpoint: string | null }>`
      select origin, checkpoint from proof_log where tenant = ${tenant}`.execute(db);
    for (const { origin, checkpoint } of rows) {
      for (const note of [checkpoint, signer.newest.newest(origin)?.note]) {
        const parsed = parseCheckpoint(note ?? '');
        if (parsed === undefined) continue;
        const root = parsed.root.toString('hex');
        const known = seen.get(`${parsed.origin} ${parsed.size}`);
        if (known !== undefined && known !== root) faults.push(`two roots of ${parsed.size}`);
        seen.set(`${parsed.origin} ${parsed.size}`, root);
      }
    }
  }
  const unlessAway = async (work: () => Promise<unknown>): Promise<void> => {
    await work().catch(() => sleep(50));
  };
  const repeated = async (work: () => Promise<unknown>): Promise<void> => {
    while (!isOver) await unlessAway(work);
  };

  const processes = [start(), start()];
  const killAll = async () => {
    for (const child of processes) {
      const ended = once(child, 'exit');
      if (child.kill('SIGKILL')) await ended;
    }
  };
  const working = [
    repeated(async () => {
      const count = 1 + random.below(40);
      await record(Array.from({ length: count }, () => changeOf({ at: Date.now() })));
      await sleep(50);
    }),
    repeated(async () => {
      await witness();
      await sleep(10);
    }),
  ];
  try {
    // Something is signed before the first kill.
    while (seen.size === 0) await sleep(10);
    for (let killed = 0; killed < kills; killed += 1) {
      // While both are at work, and at any moment of it.
      for (const before = seen.size; seen.size < before + 2; ) await sleep(5);
      await sleep(random.below(60));
      const place = killed % 2;
      const child = processes[place] as ChildProcess;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await onKill?.(killed + 1);
      if (killed + 1 < kills) processes[place] = start();
    }
  } finally {
    isOver = true;
    await killAll();
  }
  await Promise.all(working);
  await givePositions(db, tenant);
  await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
  const { position } = await lastPosition(db, tenant);
  // The connection of a process that was killed may have the lock for a moment.
  do {
    await sealPortion(db, tenant, { signer, now: () => Date.now() });
  } while (
    (await readLog(db, tenant))?.size !== (await readTreeSize(db, tenant)) ||
    (await readTreeSize(db, tenant)) < position
  );
  await witness();
  signer.newest.close();

  const leaves = [...leavesOf(await readLeaves(db, tenant, 1, position))];
  const roots = new Map<number, string>();
  const fold = new MerkleFold();
  for (const leaf of leaves) {
    fold.add(hashOfLeaf(leaf));
    roots.set(fold.size, fold.root().toString('hex'));
  }
  const logs = new Set([...seen.keys()].map((key) => key.split(' ')[0]));
  if (logs.size !== 1) faults.push(`${logs.size} logs`);
  for (const [key, root] of seen)
    if (roots.get(Number(key.split(' ')[1])) !== root) faults.push(`${key} is of another tree`);
  if (leaves.length !== position) faults.push(`${leaves.length} leaves of ${position} positions`);
  return { faults, checkpoints: seen.size, leaves: leaves.length };
}
