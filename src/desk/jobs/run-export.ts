import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import { sql } from 'kysely';
import type { ExportHistory, ExportPiece } from '../../core/export-history.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { appendChunk, dropChunks } from './content-store.ts';
import type { ExportInput } from './job.ts';
import { abandonJob, JobLost, type TakenJob, updateJob, updateProgress } from './job-store.ts';
import type { JobDocument } from './schemas.ts';

const pack = promisify(zstdCompress);
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** The time slice of the export's tenant is over. The file so far is stored. */
export class TimeSliceOver extends Error {
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
  { db, exportHistory, now }: { db: Database; exportHistory: ExportHistory; now: () => number },
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

  const { q, format, askedAt, withContext = false, proof = false, restriction } = input;
  let begun = job.progress !== undefined;
  const resume = job.progress;
  const request = { tenant, q, format, withContext, proof, restriction, askedAt, resume, signal: stop.signal };
  await exportHistory.run(request, async (piece) => {
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
