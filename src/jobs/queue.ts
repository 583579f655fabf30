import type { FastifyBaseLogger } from 'fastify';
import type pg from 'pg';
import { fromKysely, PgBoss } from 'pg-boss';
import type { DatabaseTransaction } from '../db/database.ts';
import { createLogger } from '../http/logger.ts';
import type { JobType } from './job.ts';

/** Which job a worker is to take up. */
export interface Errand {
  readonly tenant: string;
  readonly id: string;
}

export type Handle = (errand: Errand, signal: AbortSignal) => Promise<void>;

/**
 * Hands jobs to workers, of this process or another on the same database. It holds no truth: an errand may come twice,
 * and one whose job is gone is no harm.
 */
export interface Queue {
  /** Makes what it needs in the database. Nothing can be sent before. */
  prepare(): Promise<void>;
  /** Sends an errand with the transaction. */
  send(transaction: DatabaseTransaction, type: JobType, errand: Errand): Promise<void>;
  /** Forgets an errand with the transaction. */
  forget(transaction: DatabaseTransaction, type: JobType, id: string): Promise<void>;
  /** Lets this process look at once for what has been sent, as far as it works. */
  wake(type: JobType): void;
  work(handlers: Readonly<Record<JobType, Handle>>): Promise<void>;
  /** Takes no more errands, and waits for those in hand. */
  close(): Promise<void>;
}

const nameOf: Readonly<Record<JobType, string>> = { AGENT_CHAT: 'annals.agent-chat', EXPORT: 'annals.export' };
const types: readonly JobType[] = ['AGENT_CHAT', 'EXPORT'];

/** How many of a kind a process works on at once: an export is a scan of the history, a chat waits for a vendor. */
const atOnce: Readonly<Record<JobType, number>> = { AGENT_CHAT: 4, EXPORT: 1 };

// Seconds. A worker that has not been heard of for so long is dead, and its errand is handed out again.
const heartbeat = 15;
const supervision = 5;
const polling = 1;
const longest = 24 * 60 * 60;

/** Makes what the queue needs in the database; safe for several processes at once. */
export async function prepareQueue(pool: pg.Pool): Promise<void> {
  const queue = createQueue({ pool, logger: createLogger('silent') });
  try {
    await queue.prepare();
  } finally {
    await queue.close();
  }
}

export function createQueue({ pool, logger }: { pool: pg.Pool; logger: FastifyBaseLogger }): Queue {
  const boss = new PgBoss({
    db: { executeSql: async (text, values) => await pool.query(text, values) },
    schema: 'pgboss',
    schedule: false,
    superviseIntervalSeconds: supervision,
    monitorIntervalSeconds: supervision,
    // Its own account of what is slow or piles up is of no use to the operator of this service.
    monitorVacuum: false,
    reindex: false,
  });
  boss.on('error', (error) => logger.warn({ err: error }, 'the job queue met an error; it goes on'));
  let workers: { type: JobType; id: string }[] = [];

  return {
    async prepare() {
      await boss.start();
      for (const type of types) {
        await boss.createQueue(nameOf[type], {
          // Whether a job has failed is decided by the job itself; the queue does not give up.
          retryLimit: 1_000_000,
          retryDelay: 1,
          heartbeatSeconds: heartbeat,
          expireInSeconds: longest,
          deleteAfterSeconds: 60,
        });
      }
    },

    async send(transaction, type, errand) {
      const { tenant, id } = errand;
      await boss.send(nameOf[type], { tenant, id }, { id, db: fromKysely(transaction) });
    },

    async forget(transaction, type, id) {
      await boss.deleteJob(nameOf[type], id, { db: fromKysely(transaction) });
    },

    wake(type) {
      for (const worker of workers) if (worker.type === type) boss.notifyWorker(worker.id);
    },

    async work(handlers) {
      for (const type of types) {
        const options = { pollingIntervalSeconds: polling, localConcurrency: atOnce[type] };
        const id = await boss.work<Errand>(nameOf[type], options, async (jobs) => {
          for (const { data, signal } of jobs) await handlers[type](data, signal);
        });
        workers.push({ type, id });
      }
    },

    async close() {
      workers = [];
      await Promise.all(types.map((type) => boss.offWork(nameOf[type], { wait: true })));
      await boss.stop({ graceful: false, close: false });
    },
  };
}
