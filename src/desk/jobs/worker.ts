import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import type { FastifyBaseLogger } from 'fastify';
import { sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { ExportHistory, ExportPiece } from '../../core/export-history.ts';
import { keepLease, rest } from '../../core/repeat.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import { mayReadContext, type Scope } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { QueuedChat, RunQueuedChat } from '../queued-chat.ts';
import { answeredDocument, describeFailure, type ExportInput, type JobType, needsContext } from './job.ts';
import {
  abandonJob,
  appendChunk,
  dropChunks,
  findLeasedJob,
  JobLost,
  noteCall,
  type TakenJob,
  updateJob,
  updateProgress,
} from './job-store.ts';
import { extendLease, jobLease, requeue } from './queue-store.ts';
import type { JobDocument } from './schemas.ts';

const pack = promisify(zstdCompress);
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** The time slice of the export's tenant is over. The file so far is stored. */
class TimeSliceOver extends Error {
  constructor() {
    super('the export makes way for another tenant');
    this.name = 'TimeSliceOver';
  }
}

/**
 * Writes the file of an export, resuming an earlier attempt. Each part is stored in one transaction with the progress,
 * so the file always holds the first entries of one snapshot. Throws after the next part once `turn` is aborted.
 */
export async function runExport(
  { db, exportHistory, scopesNow, now }: Pick<WorkerOptions, 'db' | 'exportHistory' | 'scopesNow' | 'now'>,
  job: TakenJob,
  { stop, turn }: { stop: AbortController; turn: StopSignal },
): Promise<void> {
  const { tenant, id } = job;
  const input: ExportInput = JSON.parse(job.input);
  let entries = job.progress === undefined ? 0 : (job.document.metadata.entries ?? 0);
  let bytes = job.progress === undefined ? 0 : (job.document.metadata.bytes ?? 0);

  let { version } = job.document.metadata;

  const nextDocument = (status: JobDocument['status']): JobDocument => {
    version += 1;
    const modifiedAt = new Date(now()).toISOString();
    return { ...job.document, status, metadata: { ...job.document.metadata, version, modifiedAt, entries, bytes } };
  };

  async function take(piece: ExportPiece): Promise<void> {
    const plain = Buffer.from(piece.text);
    const content = await pack(plain, packing);
    if (piece.isFirst) entries = bytes = 0;
    entries += piece.entries;
    bytes += plain.length;
    await inTransaction(db, async (transaction) => {
      // A database crash can lose the last parts together with their progress. The final commit is durable.
      await sql`set local synchronous_commit = off`.execute(transaction);
      if (!(await updateJob(transaction, job, nextDocument('in_progress')))) abandonJob(stop);
      if (piece.isFirst) await dropChunks(transaction, tenant, id);
      await appendChunk(transaction, tenant, id, { bytes: plain.length, content });
      await updateProgress(transaction, job, piece);
    });
  }

  const { q, format, bom, rows, askedAt, withContext = false, proof = false, restriction } = input;
  const { clientId, ...metadata } = job.document.metadata;
  const scopes = clientId === undefined ? undefined : await scopesNow(tenant, clientId);
  const readsContext = mayReadContext(scopes ?? []);
  if (needsContext(metadata) && !readsContext) throw noContext();
  let begun = job.progress !== undefined;
  const resume = job.progress;
  const options = { format, bom, rows, withContext, readsContext, proof, restriction, clientId, askedAt, resume };
  await exportHistory.run({ tenant, q, ...options, signal: stop.signal }, async (piece) => {
    begun = true;
    await take(piece);
    if (turn.aborted) throw new TimeSliceOver();
  });
  await inTransaction(db, async (transaction) => {
    if (!begun) entries = bytes = 0;
    if (!(await updateJob(transaction, job, nextDocument('success')))) throw new JobLost();
    // An attempt whose snapshot was reset has left its parts.
    if (!begun) await dropChunks(transaction, tenant, id);
  });
}

function noContext(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    'The client of this export may no longer read contexts: it needs changelog.changelog_manage.',
  );
}

export interface WorkerOptions {
  db: Database;
  logger: FastifyBaseLogger;
  now: () => number;
  exportHistory: ExportHistory;
  /** The current scopes of a client; undefined for a revoked or deleted one. */
  scopesNow: (tenant: string, clientId: string) => Promise<readonly Scope[] | undefined>;
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

/**
 * Runs a chat at most once. If a process dies after its call may have been sent, no other process repeats it (contract
 * 8), because the vendor may have answered and charged it.
 */
async function runAgentChat(
  { db, runChat, now }: { db: Database; runChat: RunQueuedChat; now: () => number },
  job: TakenJob,
  stop: AbortController,
): Promise<void> {
  if (job.callBegan) {
    throw new AnnalsError(
      'provider_error',
      'The service stopped during the call of the agent, and did not repeat the call.',
    );
  }
  const chat: QueuedChat = JSON.parse(job.input);
  const callBegins = async () => {
    if (!(await noteCall(db, job))) abandonJob(stop);
  };
  const answered = await runChat(chat, { signal: stop.signal, callBegins });
  if (!(await updateJob(db, job, answeredDocument(job.document, now(), answered)))) throw new JobLost();
}
