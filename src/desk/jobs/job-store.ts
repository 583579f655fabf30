import { type Generated, type RawBuilder, sql } from 'kysely';
import type { ExportPiece, ExportProgress } from '../../core/export-history.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { Caller, Credentials } from '../../http/credentials.ts';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { projectedJson } from '../../query/json-projection.ts';
import { type JobType, withoutHistory } from './job.ts';
import type { JobDocument } from './schemas.ts';

interface JobTable {
  tenant: string;
  id: string;
  type: JobType;
  status: 'in_progress' | 'success' | 'failure' | 'skipped';
  /** The job as JSON text for clients that may not read the change history. */
  document: string;
  /** The same as jsonb, for filters and sorting. */
  fields: string;
  /** The job for clients that may read the change history; null if identical. */
  full_document: string | null;
  full_fields: string | null;
  /** The worker's input as JSON text. */
  input: string;
  /** The client of an export; null for chats, and for exports older than this column. */
  client: string | null;
  /** Defines the order of a tenant's jobs. */
  queued_at: Generated<Date>;
  /** When the lease of its worker expires; null while the job waits for a worker. */
  held_until: Date | null;
  attempt: number;
  stalled: number;
  call_began: boolean;
  /** The position of a chat in its session; null in exports, and in chats older than these columns. */
  session_id: string | null;
  place: number | null;
  snapshot: string | null;
  snapshot_on: string | null;
  since: number | null;
  last_at: number | null;
  last_sequence: number | null;
  last_path: number | null;
}

interface JobChunkTable {
  tenant: string;
  job: string;
  chunk: number;
  /** The size of the content before compression. */
  bytes: number;
  content: Uint8Array;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    job: JobTable;
    job_chunk: JobChunkTable;
  }
}

/** The reader of jobs (contract 8). */
export interface JobReader extends Pick<Credentials, 'tenant' | 'clientId' | 'person'> {
  /** Without a changelog scope nothing of the change history is visible. */
  readonly readsHistory: boolean;
  /** Whether what is known of contexts is visible, as far as that of the change history is. */
  readonly readsContext: boolean;
  /** Without a scope for jobs only the exports of the own client or person are visible. */
  readonly seesAll: boolean;
  /** Limits one's own exports to those that were made with it; it may have been narrowed since. */
  readonly restriction?: readonly WrittenRestriction[] | undefined;
  /** The network address of a download. */
  readonly caller?: Caller | undefined;
}

/** A job leased by a worker. The worker's writes count only until another worker takes the job. */
export interface TakenJob {
  readonly tenant: string;
  readonly id: string;
  readonly type: JobType;
  readonly attempt: number;
  readonly stalled: number;
  readonly callBegan: boolean;
  readonly document: JobDocument;
  /** JSON text. */
  readonly input: string;
  readonly progress: ExportProgress | undefined;
}

/** The worker no longer leases the job: a client deleted it, or another worker took it. */
export class JobLost extends Error {
  constructor() {
    super('the job was deleted or taken by another worker');
    this.name = 'JobLost';
  }
}

/** Stops all work for a lost job, and throws in the code that noticed the loss. */
export function abandonJob(stop: AbortController): never {
  const lost = new JobLost();
  stop.abort(lost);
  throw lost;
}

export async function insertJob(
  transaction: DatabaseTransaction,
  tenant: string,
  job: { document: JobDocument; input: object; place?: number | undefined },
): Promise<void> {
  const { id, type, status } = job.document;
  const { place = null } = job;
  const sessionId = place === null ? null : (job.document.sessionId ?? null);
  const { clientId: client = null } = job.document.metadata;
  const input = JSON.stringify(job.input);
  await sql`
    insert into job (tenant, id, type, status, input, session_id, place, client, document, fields, full_document, full_fields)
      values (${tenant}, ${id}, ${type}, ${status}, ${input}, ${sessionId}::text, ${place}::bigint, ${client},
        ${textsOf(job.document)})`.execute(transaction);
}

/** The jobs as visible to the reader, who can neither filter nor sort by hidden data. */
export function jobRows(reader: JobReader): DocumentRows {
  const isFull = reader.readsContext ? sql`true` : sql`not ${searchesContext}`;
  const full = sql`(select tenant, id, type, client, input,
    case when ${isFull} then coalesce(full_document, document) else document end as document,
    case when ${isFull} then coalesce(full_fields, fields) else fields end as fields from job) full_job`;
  return { from: reader.readsHistory ? full : sql`job`, where: sql`tenant = ${reader.tenant} and ${shownTo(reader)}` };
}

/** Whether an export's query has terms on contexts: then its results are for readers of contexts. */
const searchesContext = sql<boolean>`coalesce((fields #> '{metadata,searchesContext}')::boolean, false)`;

/** The jobs of the tenant that a reader sees (contract 8). */
function shownTo({
  clientId,
  person,
  seesAll,
  restriction,
}: Pick<JobReader, 'clientId' | 'person' | 'seesAll' | 'restriction'>): RawBuilder<boolean> {
  if (seesAll) return sql<boolean>`true`;
  // The input of a chat may have characters that the extraction of a member refuses.
  const ofExport = (condition: RawBuilder<unknown>) => sql`case when type = 'EXPORT' then ${condition} else false end`;
  const isOfPerson =
    person === undefined
      ? sql``
      : sql`or ${ofExport(sql`coalesce(input::json #>> '{person,issuer}' = ${person.issuer}
          and input::json #>> '{person,subject}' = ${person.subject}, false)`)}`;
  const isOwn = sql<boolean>`(type = 'EXPORT' and (client = ${clientId} ${isOfPerson}))`;
  if (restriction === undefined) return isOwn;
  const isAlike = sql`(input::json -> 'restriction')::jsonb is not distinct from ${JSON.stringify(restriction)}::jsonb`;
  return sql<boolean>`(${isOwn} and ${ofExport(isAlike)})`;
}

/** The job's document as JSON text. */
export async function findJob(
  db: Database,
  reader: JobReader,
  id: string,
): Promise<{ document: string; type: JobType; status: JobDocument['status'] } | undefined> {
  const row = await db
    .selectFrom('job')
    .select(['document', 'full_document as fullDocument', 'type', 'status', searchesContext.as('searchesContext')])
    .where(({ and }) => and({ tenant: reader.tenant, id }))
    .where(shownTo(reader))
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { document, fullDocument, type, status } = row;
  const isFull = reader.readsHistory && (reader.readsContext || !row.searchesContext);
  return { document: (isFull ? fullDocument : null) ?? document, type, status };
}

/** Deletes a job and its file. False if the reader sees no such job. */
export async function deleteJob(
  transaction: DatabaseTransaction,
  reader: Omit<JobReader, 'readsHistory' | 'readsContext'>,
  id: string,
): Promise<boolean> {
  const { numDeletedRows } = await transaction
    .deleteFrom('job')
    .where(({ and }) => and({ tenant: reader.tenant, id }))
    .where(shownTo(reader))
    .executeTakeFirstOrThrow();
  return numDeletedRows === 1n;
}

/** The state of the job, if the worker still leases it. */
export async function findLeasedJob(
  db: Database,
  { tenant, id, attempt }: TakenJob,
): Promise<{ callBegan: boolean; version: number } | undefined> {
  return await db
    .selectFrom('job')
    .select(['call_began as callBegan', sql<number>`(fields #>> '{metadata,version}')::bigint`.as('version')])
    .where(({ and }) => and({ tenant, id, attempt, status: 'in_progress' }))
    .executeTakeFirst();
}

/** The row of the job, if the worker still leases it. */
export function leasedJob(db: Database, { tenant, id, attempt }: TakenJob) {
  return db
    .updateTable('job')
    .where(({ and }) => and({ tenant, id, attempt }))
    .where('status', '=', 'in_progress');
}

/** Notes that a call may be sent from now on. False if the worker no longer leases the job. */
export async function noteCall(db: Database, job: TakenJob): Promise<boolean> {
  const { numUpdatedRows } = await leasedJob(db, job).set({ call_began: true }).executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Ends a job, or updates its document. False if the worker no longer leases it. */
export async function updateJob(db: Database, job: TakenJob, document: JobDocument): Promise<boolean> {
  const { tenant, id, attempt } = job;
  const { numAffectedRows } = await sql`
    update job set status = ${document.status}, stalled = 0,
        (document, fields, full_document, full_fields) = row(${textsOf(document)})
      where tenant = ${tenant} and id = ${id} and attempt = ${attempt} and status = 'in_progress'`.execute(db);
  return numAffectedRows === 1n;
}

/** Stores the progress of an export, in the transaction that stores the part of the file. */
export async function updateProgress(
  transaction: DatabaseTransaction,
  { tenant, id }: TakenJob,
  { of, last }: Pick<ExportPiece, 'of' | 'last'>,
): Promise<void> {
  await transaction
    .updateTable('job')
    .set({
      snapshot: of.snapshot,
      snapshot_on: of.placement,
      since: of.since,
      last_at: last.at,
      last_sequence: last.sequence,
      last_path: last.path ?? null,
    })
    .where(({ and }) => and({ tenant, id }))
    .execute();
}

/** Both texts of the document for all clients, and both texts of the full document where it differs. */
function textsOf(document: JobDocument) {
  const shown = withoutHistory(document);
  const full = shown === document ? sql`null::text, null::jsonb` : textAndFields(document);
  return sql`${textAndFields(shown)}, ${full}`;
}

/** Drops lone surrogates, which vendors can send and which are not valid text. */
function textAndFields(document: JobDocument) {
  const text = JSON.stringify(document, (_key, value) => (typeof value === 'string' ? value.toWellFormed() : value));
  return sql`${text}::text, ${projectedJson(text)}::jsonb`;
}

/** A compressed part of an export's file. */
interface Chunk {
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
