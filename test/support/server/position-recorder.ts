import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledQuery } from 'kysely';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase, type DatabaseTransaction } from '../../../src/postgres/database.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChanges } from '../../../src/recording/record-change.ts';

/** What a recorder of position-law.ts is to do. */
export interface RecorderTask {
  url: string;
  tenant: string;
  seed: number;
  transactions: number;
  /** Milliseconds between the parts of a transaction and before its end, at most. */
  maxDelay: number;
  /** Changes of a part at most. */
  maxChanges: number;
  /** In place of transactions: so many changes in batches of 2,000, which it folds at the end. */
  imported?: number;
}

/**
 * A transaction whose commit was acknowledged: nanoseconds of the machine's clock, and the identities of what it
 * recorded.
 */
export interface Committed {
  began: string;
  ended: string;
  identities: string[];
}

const task = JSON.parse(process.argv[2] ?? '{}') as RecorderTask;
const pool = createPool(task.url, { maximum: 2 });
const db = createDatabase(pool);
let state = task.seed;
let made = 0;

function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}

function changes(count: number): Change[] {
  return Array.from({ length: count }, () => {
    made += 1;
    const identity = Buffer.alloc(16);
    identity.writeUInt32BE(task.seed >>> 0, 0);
    identity.writeUInt32BE(made, 4);
    identity.writeUInt32BE(process.pid, 8);
    const at = Date.now() - below(3) * below(40) * 86_400_000 - below(1_000);
    return {
      at,
      identity,
      type: 'update',
      entity: 'order',
      entityId: `${below(500)}`,
      actor: 'a',
      related: [],
      paths: '{}',
    };
  });
}

const hex = (change: Change) => Buffer.from(change.identity).toString('hex');

class RolledBack extends Error {}

async function recordParts(transaction: DatabaseTransaction): Promise<string[]> {
  const run = (text: string) => transaction.executeQuery(CompiledQuery.raw(text));
  const identities: string[] = [];
  const parts = 1 + below(3);
  for (let part = 0; part < parts; part += 1) {
    const isSaved = below(3) === 0;
    if (isSaved) await run('savepoint part');
    const batch = changes(1 + below(task.maxChanges));
    await recordChanges(transaction, task.tenant, batch, Date.now(), { way: 'service' });
    if (isSaved && below(2) === 0) await run('rollback to savepoint part');
    else identities.push(...batch.map(hex));
    if (below(2) === 0) await sleep(below(task.maxDelay));
  }
  if (below(8) === 0) throw new RolledBack();
  return identities;
}

async function recordTransactions(): Promise<void> {
  for (let left = task.transactions; left > 0; ) {
    const began = process.hrtime.bigint();
    try {
      const identities = await db.transaction().execute(recordParts);
      console.log(
        JSON.stringify({ began: `${began}`, ended: `${process.hrtime.bigint()}`, identities } satisfies Committed),
      );
      left -= 1;
    } catch (error) {
      // The database may be away for a while.
      if (!(error instanceof RolledBack)) await sleep(100);
    }
  }
}

async function importAll(count: number): Promise<void> {
  const record = createRecorder(db, task.tenant, Date.now);
  for (let done = 0; done < count; done += 2_000) {
    const batch = changes(Math.min(2_000, count - done));
    await record(batch).catch(() => sleep(100));
  }
  await foldHistory(db, task.tenant).catch(() => {});
}

await (task.imported === undefined ? recordTransactions() : importAll(task.imported));
await pool.end();
