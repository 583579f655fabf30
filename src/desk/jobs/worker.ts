import type { FastifyBaseLogger } from 'fastify';
import { keepLease } from '../../core/concurrency/lease.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { ExportHistory } from '../../core/export-history.ts';
import { rest } from '../../core/repeat.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import type { RunQueuedChat } from '../queued-chat.ts';
import { describeFailure, type JobType } from './job.ts';
import { findHeldJob, JobLost, type TakenJob, updateJob } from './job-store.ts';
import { extendHold, handBack, jobLease } from './queue-store.ts';
import { runAgentChat } from './run-agent-chat.ts';
import { runExport, TurnOver } from './run-export.ts';

export interface WorkerOptions {
  db: Database;
  logger: FastifyBaseLogger;
  now: () => number;
  exportHistory: ExportHistory;
  runChat: RunQueuedChat;
  /** For metrics: called when this process has ended a job. */
  onEnded?: ((type: JobType, status: 'success' | 'failure' | 'skipped') => void) | undefined;
}

export interface Worker {
  /**
   * Runs a job to its end, or returns it to the queue. An export returns after its next piece once `turn` is aborted. Throws
   * where the database does not store the outcome.
   */
  work(job: TakenJob, turn: StopSignal): Promise<void>;
  /** Returns exports to the queue at once; another process resumes them. A chat has this many milliseconds to end. */
  stop(grace: number): void;
}

/** A job that was taken this often without progress probably crashes its processes. The worker ends it as failed. */
const maxStalls = 25;
// Milliseconds. The interval for noticing that a job was deleted, and the delays before a failed job is tried again: each
// is twice as long as the last until the job makes progress.
const look = 1_000;
const pauses = { min: 1_000, max: 60_000 };

export function createWorker(options: WorkerOptions): Worker {
  const { db, logger, now } = options;
  const stopExports = new AbortController();
  const stopChats = new AbortController();

  async function perform(job: TakenJob, stop: AbortController, turn: StopSignal): Promise<void> {
    if (job.stalled > maxStalls) {
      throw new AnnalsError('internal_service_error', `The job was started ${maxStalls} times without progress.`);
    }
    if (job.type === 'EXPORT') await runExport(options, job, { stop, turn });
    else await runAgentChat(options, job, stop);
  }

  /** Whether the job is to be tried again. A chat is tried again only where its process ends before the first call. */
  function isPassing(job: TakenJob, error: unknown, stopped: boolean, callBegan: boolean): boolean {
    if (job.type === 'AGENT_CHAT') return stopped && !callBegan;
    return stopped || (job.stalled <= maxStalls && !(error instanceof AnnalsError));
  }

  async function end(
    job: TakenJob,
    error: unknown,
    { callBegan, version }: { callBegan: boolean; version: number },
  ): Promise<void> {
    const skipped = job.type === 'AGENT_CHAT' && !callBegan && hasNobodyToAsk(error);
    const status = skipped ? 'skipped' : 'failure';
    const modifiedAt = new Date(now()).toISOString();
    const metadata = { ...job.document.metadata, version: version + 1, modifiedAt, error: describeFailure(error) };
    if (await updateJob(db, job, { ...job.document, status, metadata })) options.onEnded?.(job.type, status);
  }

  async function work(job: TakenJob, turn: StopSignal): Promise<void> {
    const { tenant, id } = job;
    const ending = (job.type === 'EXPORT' ? stopExports : stopChats).signal;
    const stop = new AbortController();
    const over = new AbortController();
    const onStop = () => stop.abort(new Error('the worker of the job was told to stop'));
    if (ending.aborted) onStop();
    else ending.addEventListener('abort', onStop, { once: true });
    const watch = watchJob(db, job, stop, over.signal);
    const endLease = keepLease(() => extendHold(db, job), {
      heartbeat: jobLease / 4,
      onError: (error) => logger.warn({ err: error, tenant, job: id }, 'a job could not extend its lease'),
    });
    try {
      stop.signal.throwIfAborted();
      await perform(job, stop, turn);
      options.onEnded?.(job.type, 'success');
    } catch (error) {
      const held = error instanceof JobLost ? undefined : await findHeldJob(db, job);
      if (held === undefined) return;
      if (error instanceof TurnOver) {
        await handBack(db, job, 0);
        return;
      }
      if (isPassing(job, error, ending.aborted, held.callBegan)) {
        if (!ending.aborted) logger.warn({ err: error, tenant, job: id }, 'a job failed; it is tried again');
        await handBack(db, job, ending.aborted ? 0 : pauseOf(job));
        return;
      }
      logger.warn({ err: error, tenant, job: id }, 'a job failed');
      await end(job, error, held);
    } finally {
      endLease();
      over.abort();
      ending.removeEventListener('abort', onStop);
      await watch;
    }
  }

  return {
    work,
    stop(grace) {
      stopExports.abort();
      setTimeout(() => stopChats.abort(), grace).unref();
    },
  };
}

function pauseOf({ stalled }: TakenJob): number {
  return Math.min(pauses.max, pauses.min * 2 ** Math.max(0, stalled - 1));
}

/** The agent was deleted or disabled meanwhile. */
function hasNobodyToAsk(error: unknown): boolean {
  return error instanceof AnnalsError && (error.type === 'resource_not_found' || error.type === 'conflict_resource');
}

/** Stops the work on a job that the worker no longer holds. Deleting a job stops it (contract 8). */
async function watchJob(db: Database, job: TakenJob, stop: AbortController, over: AbortSignal): Promise<void> {
  for (;;) {
    await rest(look, over);
    if (over.aborted) return;
    // After a failed query the next round asks again.
    const held = await findHeldJob(db, job).catch(() => 'unknown');
    if (held === undefined) stop.abort(new JobLost());
  }
}
