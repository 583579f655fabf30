import type { FastifyBaseLogger } from 'fastify';
import { type Release, Semaphore } from '../../core/fairness/semaphore.ts';
import { rest } from '../../core/repeat.ts';
import { Stop, type StopSignal } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { JobType } from './job.ts';
import type { TakenJob } from './job-store.ts';
import { jobWork, releaseExpiredJobs, requeue, takeNextJob, type WaitsForSession } from './queue-store.ts';

/** Takes waiting jobs, tenant by tenant, while this process has free places. */
export interface Dispatcher {
  start(findTenants: FindTenants): void;
  /** Takes such a job without waiting for the interval. Call it after committing the transaction that queued it. */
  wake(queued: QueuedJob): void;
  /** Takes no more jobs and waits for the running ones. */
  close(): Promise<void>;
}

export type QueuedJob = Pick<TakenJob, 'tenant' | 'type'>;

export interface DispatcherOptions {
  db: Database;
  logger: FastifyBaseLogger;
  waitsForSession: WaitsForSession;
  /**
   * Runs a job. Errors are logged. `turn` is aborted at the end of the tenant's time slice: a job that can resume later
   * then returns to the queue.
   */
  work(job: TakenJob, turn: StopSignal): Promise<void>;
}

/**
 * The job places of a process, and the max. places of one tenant. A chat waits for a provider and costs little. An
 * export scans the history and holds a connection; it yields to a tenant without a running one.
 */
export const jobPlaces: Readonly<Record<JobType, { places: number; maxOfTenant: number }>> = {
  AGENT_CHAT: { places: 64, maxOfTenant: 4 },
  EXPORT: { places: 8, maxOfTenant: 1 },
};

// Milliseconds. Jobs queued by this process are taken immediately; the interval finds those of other processes.
const pollInterval = 500;
const releaseInterval = 2_000;

export function createDispatcher({ db, logger, waitsForSession, work }: DispatcherOptions): Dispatcher {
  const places: Readonly<Record<JobType, Semaphore>> = {
    AGENT_CHAT: new Semaphore({ ...jobPlaces.AGENT_CHAT, name: 'chats by job' }),
    EXPORT: new Semaphore({ ...jobPlaces.EXPORT, name: 'exports' }),
  };
  const inHand = new Set<Promise<void>>();
  /** Oldest first. */
  const runningExports = new Set<RunningExport>();
  const lastServed: Readonly<Record<JobType, Map<string, number>>> = { AGENT_CHAT: new Map(), EXPORT: new Map() };
  /** Tenants with jobs queued here and not found by a poll yet. */
  const queuedHere: Readonly<Record<JobType, Set<string>>> = { AGENT_CHAT: new Set(), EXPORT: new Set() };
  const stop = new AbortController();
  let loop: Promise<void> = Promise.resolve();
  let lastFreed = Number.NEGATIVE_INFINITY;
  let served = 0;
  let isWoken = false;
  let wakeUp = () => {};

  async function run(findTenants: FindTenants): Promise<void> {
    while (!stop.signal.aborted) {
      isWoken = false;
      try {
        await releaseLostJobs(findTenants);
        await fillPlaces(findTenants);
      } catch (error) {
        logger.warn({ err: error }, 'looking for jobs failed; retrying');
      }
      await untilWoken();
    }
  }

  async function releaseLostJobs(findTenants: FindTenants): Promise<void> {
    if (performance.now() - lastFreed < releaseInterval) return;
    await releaseExpiredJobs(db, findTenants);
    lastFreed = performance.now();
  }

  async function fillPlaces(findTenants: FindTenants): Promise<void> {
    for (const type of ['AGENT_CHAT', 'EXPORT'] as const) {
      let tenants = [...new Set([...(await findTenants(jobWork[type])), ...queuedHere[type]])];
      forgetTurns(type, new Set(tenants));
      if (type === 'EXPORT') yieldPlacesTo(tenants);
      // Takes one job of each tenant in turn, until no tenant gets a place.
      while (tenants.length > 0 && !stop.signal.aborted) {
        const begun: string[] = [];
        for (const tenant of inTurn(type, tenants)) if (await takeOne(type, tenant)) begun.push(tenant);
        tenants = begun;
      }
    }
  }

  /** Ends the time slices of as many exports as there are waiting tenants without a running one. */
  function yieldPlacesTo(waiting: readonly string[]): void {
    const free = jobPlaces.EXPORT.places - places.EXPORT.taken();
    yieldPlaces(runningExports, waiting.filter((tenant) => places.EXPORT.taken(tenant) === 0).length - free);
  }

  /** Forgets the turns of tenants without waiting jobs. */
  function forgetTurns(type: JobType, waiting: ReadonlySet<string>): void {
    for (const tenant of lastServed[type].keys()) if (!waiting.has(tenant)) lastServed[type].delete(tenant);
  }

  /** Tenants with fewer running jobs first, then those that have waited longest. */
  function inTurn(type: JobType, tenants: readonly string[]): string[] {
    const rank = (tenant: string) => lastServed[type].get(tenant) ?? 0;
    return [...tenants].sort((a, b) => places[type].taken(a) - places[type].taken(b) || rank(a) - rank(b));
  }

  async function takeOne(type: JobType, tenant: string): Promise<boolean> {
    const release = places[type].tryAcquire(tenant);
    if (release === undefined) return false;
    let job: TakenJob | undefined;
    try {
      job = await takeNextJob(db, tenant, { type, waitsForSession });
    } finally {
      if (job === undefined) release();
    }
    if (job === undefined) {
      queuedHere[type].delete(tenant);
      return false;
    }
    if (stop.signal.aborted) {
      release();
      await requeue(db, job, 0);
      return false;
    }
    served += 1;
    lastServed[type].set(tenant, served);
    begin(job, release);
    return true;
  }

  function begin(job: TakenJob, release: Release): void {
    const { tenant, id, type } = job;
    const running = new RunningExport();
    if (type === 'EXPORT') runningExports.add(running);
    const working = work(job, running.turn)
      .catch((error: unknown) =>
        logger.warn({ err: error, tenant, job: id }, 'a job was interrupted and returns to the queue'),
      )
      .finally(() => {
        inHand.delete(working);
        runningExports.delete(running);
        release();
        wake({ tenant, type });
      });
    inHand.add(working);
  }

  async function untilWoken(): Promise<void> {
    if (isWoken) return;
    const woken = new Promise<void>((resolve) => {
      wakeUp = resolve;
    });
    const over = new AbortController();
    await Promise.race([woken, rest(pollInterval, AbortSignal.any([over.signal, stop.signal]))]);
    over.abort();
  }

  function wake({ tenant, type }: QueuedJob): void {
    queuedHere[type].add(tenant);
    isWoken = true;
    wakeUp();
  }

  return {
    start(findTenants) {
      loop = run(findTenants);
    },

    wake,

    async close() {
      stop.abort();
      await loop;
      await Promise.all(inHand);
    },
  };
}

/** The min. time slice of an export in milliseconds, to be worth the start of its query. */
export const minExportSlice = 500;

/** A running export. Its time slice ends when `turn` is aborted. */
export class RunningExport {
  readonly turn = new Stop();
  readonly #began = performance.now();

  get hasHadTurn(): boolean {
    return performance.now() - this.#began >= minExportSlice;
  }
}

/** Ends the time slices of so many exports, minus those that are ending, oldest first. */
export function yieldPlaces(running: Iterable<RunningExport>, count: number): void {
  const exports = [...running];
  const active = exports.filter(({ turn }) => !turn.aborted);
  const missing = count - (exports.length - active.length);
  for (const { turn } of active.filter(({ hasHadTurn }) => hasHadTurn).slice(0, Math.max(0, missing))) {
    turn.abort(new Error('the turn of the tenant is over'));
  }
}
