import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import './tables.ts';

/** A compressed part of an export's file. */
export interface Chunk {
  readonly bytes: number;
  readonly content: Uint8Array;
}

/** Appends a part to a job's file. The caller holds the lock of the job. */
export async function appendChunk(
  transaction: DatabaseTransaction,
  tenant: string,
  job: string,
  { bytes, content }: Chunk,
): Promise<void> {
  await sql`
    insert into job_chunk (tenant, job, chunk, bytes, content)
      select ${tenant}, ${job}, coalesce(max(chunk), 0) + 1, ${bytes}::bigint, ${content}::bytea
        from job_chunk where tenant = ${tenant} and job = ${job}`.execute(transaction);
}

/** Empties a job's file. */
export async function dropChunks(transaction: DatabaseTransaction, tenant: string, job: string): Promise<void> {
  await transaction.deleteFrom('job_chunk').where('tenant', '=', tenant).where('job', '=', job).execute();
}

/** The compressed content of a part, counted from 1. Undefined after the last. */
export async function readChunk(
  db: Database,
  tenant: string,
  job: string,
  chunk: number,
): Promise<Uint8Array | undefined> {
  const row = await db
    .selectFrom('job_chunk')
    .select('content')
    .where(({ and }) => and({ tenant, job, chunk }))
    .executeTakeFirst();
  return row?.content;
}
