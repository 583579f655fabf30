import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { ExportHistory } from '../../core/export-history.ts';
import { keepLease } from '../../core/lease.ts';
import { rest } from '../../core/repeat.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import type { RunQueuedChat } from '../queued-chat.ts';
import { describeFailure, type JobType } from './job.ts';
import { findLeasedJob, JobLost, type TakenJob, updateJob } from './job-store.ts';
import { extendLease, jobLease, requeue } from './queue-store.ts';
import { runAgentChat } from './run-agent-chat.ts';
import { runExport, TimeSliceOver } from './run-export.ts';

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
   * Runs a job to its end, or returns it to the queue; an export returns after its next piece once `turn` is aborted.
   * Throws if the database does not store the outcome.
   */
  work(job: TakenJob, turn: StopSignal): Promise<void>;
  /** Returns exports to the queue; another process resumes them. A chat has this many milliseconds to end. */
  stop(grace: number): void;
}

/** Starts without progress after which a job fails, because it probably crashes its processes. */
const maxStalls = 25;
// Milliseconds: the interval for noticing a deleted job, and the delays before a retry, doubled until the job makes
// progress.
const pollInterval = 1_000;
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

  /** Whether to retry the job. A chat is retried only if its process ends before the first call. */
  function isRetryable(job: TakenJob, error: unknown, stopped: boolean, callBegan: boolean): boolean {
    if (job.type === 'AGENT_CHAT') return stopped && !callBegan;
    return stopped || (job.stalled <= maxStalls && !(error instanceof AnnalsError));
  }

  async function end(
    job: TakenJob,
    error: unknown,
    { callBegan, version }: { callBegan: boolean; version: number },
  ): Promise<void> {
    const skipped = job.type === 'AGENT_CHAT' && !callBegan && isAgentUnavailable(error);
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
    const onStop = () => stop.abort(new Error('the worker is stopping'));
    if (ending.aborted) onStop();
    else ending.addEventListener('abort', onStop, { once: true });
    const watch = watchJob(db, job, stop, over.signal);
    const endLease = keepLease(() => extendLease(db, job), {
      heartbeat: jobLease / 4,
      onError: (error) => logger.warn({ err: error, tenant, job: id }, 'a job could not extend its lease'),
    });
    try {
      stop.signal.throwIfAborted();
      await perform(job, stop, turn);
      options.onEnded?.(job.type, 'success');
    } catch (error) {
      const lease = error instanceof JobLost ? undefined : await findLeasedJob(db, job);
      if (lease === undefined) return;
      if (error instanceof TimeSliceOver) {
        await requeue(db, job, 0);
        return;
      }
      if (isRetryable(job, error, ending.aborted, lease.callBegan)) {
        if (!ending.aborted) logger.warn({ err: error, tenant, job: id }, 'a job failed; retrying');
        await requeue(db, job, ending.aborted ? 0 : pauseOf(job));
        return;
      }
      logger.warn({ err: error, tenant, job: id }, 'a job failed');
      await end(job, error, lease);
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

/** The agent was deleted or disabled while the job waited. */
function isAgentUnavailable(error: unknown): boolean {
  return error instanceof AnnalsError && (error.type === 'resource_not_found' || error.type === 'conflict_resource');
}

/** Stops the work on a job that the worker no longer leases. Deleting a job stops it (contract 8). */
async function watchJob(db: Database, job: TakenJob, stop: AbortController, over: AbortSignal): Promise<void> {
  for (;;) {
    await rest(pollInterval, over);
    if (over.aborted) return;
    // After a failed query the next round tries again.
    const lease = await findLeasedJob(db, job).catch(() => 'unknown');
    if (lease === undefined) stop.abort(new JobLost());
  }
}
