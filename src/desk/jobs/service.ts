import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { ExportFormat, ExportHistory } from '../../core/export-history.ts';
import { currentTrace, enterTrace, readTraceparent, type Tracer, traceparentOf } from '../../core/trace.ts';
import { insufficientScopes } from '../../http/scopes.ts';
import type { DocumentLists, ListParameters, Page, PageRequest } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { ChatQueue, RunQueuedChat } from '../queued-chat.ts';
import { createDispatcher } from './dispatcher.ts';
import { chatDocument, type ExportInput, type ExportRequest, exportDocument, needsContext } from './job.ts';
import { deleteJob, findJob, insertJob, type JobReader, jobRows, readChunk, type TakenJob } from './job-store.ts';
import { countWaiting, type WaitsForSession } from './queue-store.ts';
import type { JobDocument } from './schemas.ts';
import { createWorker, type WorkerOptions } from './worker.ts';

const unpack = promisify(zstdDecompress);

/** A file sent while it is read. */
export interface JobContent {
  readonly format: ExportFormat;
  readonly bytes: number;
  pieces(): AsyncGenerator<Buffer>;
}

/** Jobs (contract 8): work that outlives its request and its process. */
export interface Jobs extends ChatQueue {
  /**
   * Creates an export of the change history and returns the job's id. Throws AnnalsError for an invalid query `q`, and
   * rate_limit_exceeded if the tenant has too many waiting jobs.
   */
  startExport(tenant: string, request: ExportRequest): Promise<string>;
  list(reader: JobReader, query: ListParameters, page: PageRequest): Promise<Page>;
  /** JSON text. Throws resource_not_found. */
  find(reader: JobReader, id: string): Promise<string>;
  /**
   * Deletes a job and its file, and stops it. Without `deletesAll` only the own client's exports. Throws
   * resource_not_found, or insufficient_permissions for another visible job.
   */
  remove(reader: JobReader, id: string, options: { deletesAll: boolean }): Promise<void>;
  /**
   * The file of a successful export. With `downloads` Annals notes who downloads it, before anything is sent. Throws
   * resource_not_found, conflict_resource while the export runs, or insufficient_permissions where the file has the
   * context of entries, or its query terms on it, and the reader may not read that.
   */
  content(reader: JobReader, id: string, options: { downloads: boolean }): Promise<JobContent>;
  /** Starts to take jobs. */
  work(findTenants: FindTenants): void;
  /** Returns the running jobs to the queue, or ends them. */
  close(): Promise<void>;
}

export interface JobsOptions {
  db: Database;
  logger: FastifyBaseLogger;
  now: () => number;
  documents: DocumentLists;
  exportHistory: ExportHistory;
  /** Records a download of an export. */
  noteDownload: (reader: JobReader, details: { job: string; format: ExportFormat; bytes: number }) => Promise<void>;
  scopesNow: WorkerOptions['scopesNow'];
  runChat: RunQueuedChat;
  waitsForSession: WaitsForSession;
  /** Traces each job in a span; left out: none. */
  tracer?: Tracer | undefined;
  /** For metrics: called when this process has ended a job. */
  onEnded?: WorkerOptions['onEnded'];
  /** Milliseconds that a chat may continue on shutdown; tests use less. */
  chatGrace?: number;
}

const defaultChatGrace = 20_000;
/** The max. number of waiting jobs of a tenant (contract 11). */
export const maxWaiting = 1_000;
const retryAfter = '10';

export function createJobs(options: JobsOptions): Jobs {
  const { db, now, documents, exportHistory, noteDownload, chatGrace = defaultChatGrace } = options;
  const worker = createWorker(options);
  const dispatcher = createDispatcher({
    ...options,
    work: (job, turn) => runInTrace(options.tracer, job, () => worker.work(job, turn)),
  });

  async function make(
    transaction: DatabaseTransaction,
    tenant: string,
    { document, input, place }: { document: JobDocument; input: object; place?: number | undefined },
  ) {
    if ((await countWaiting(transaction, tenant, maxWaiting)) >= maxWaiting) throw tooManyWaiting();
    await insertJob(transaction, tenant, { document, input: withTrace(input), place });
    return document.id;
  }

  return {
    async startExport(tenant, request) {
      const { q, format, bom, rows, withContext = false, proof = false, restriction, person } = request;
      const { usesContext } = exportHistory.check(q, request);
      const askedAt = now();
      const document = exportDocument(randomUUID(), askedAt, { ...request, usesContext });
      const input: ExportInput = { q, format, bom, rows, withContext, proof, restriction, person, askedAt };
      const id = await inTransaction(db, (transaction) => make(transaction, tenant, { document, input }));
      dispatcher.wake({ tenant, type: 'EXPORT' });
      return id;
    },

    async enqueueAgentChat(transaction, chat, visibility) {
      const document = chatDocument(randomUUID(), now(), chat, visibility);
      return await make(transaction, chat.tenant, { document, input: chat, place: chat.place });
    },

    wakeAgentChats(tenant) {
      dispatcher.wake({ tenant, type: 'AGENT_CHAT' });
    },

    async list(reader, query, page) {
      return await documents.page(jobRows(reader), query, page);
    },

    async find(reader, id) {
      const job = await findJob(db, reader, id);
      if (job === undefined) throw jobNotFound();
      return job.document;
    },

    async remove(reader, id, { deletesAll }) {
      const isDeleted = await inTransaction(
        db,
        async (transaction) => await deleteJob(transaction, { ...reader, seesAll: deletesAll }, id),
      );
      if (isDeleted) return;
      throw (await findJob(db, reader, id)) === undefined ? jobNotFound() : insufficientScopes();
    },

    async content(reader, id, { downloads }) {
      const job = await findJob(db, reader, id);
      if (job === undefined) throw jobNotFound();
      if (job.type !== 'EXPORT') throw new AnnalsError('resource_not_found', 'This job has no content.');
      if (job.status === 'in_progress') throw new AnnalsError('conflict_resource', 'The export has not ended yet.');
      if (job.status !== 'success')
        throw new AnnalsError('resource_not_found', 'The export failed: it has no content.');
      const { metadata }: JobDocument = JSON.parse(job.document);
      if (needsContext(metadata) && !reader.readsContext) throw insufficientScopes();
      const { format = 'NDJSON', bytes = 0 } = metadata;
      if (downloads) await noteDownload(reader, { job: id, format, bytes });
      return {
        format,
        bytes,
        pieces: () => readPieces(db, reader.tenant, id),
      };
    },

    work: (findTenants) => dispatcher.start(findTenants),

    async close() {
      worker.stop(chatGrace);
      await dispatcher.close();
    },
  };
}

async function* readPieces(db: Database, tenant: string, id: string): AsyncGenerator<Buffer> {
  for (let chunk = 1; ; chunk++) {
    const content = await readChunk(db, tenant, id, chunk);
    if (content === undefined) return;
    yield await unpack(content);
  }
}

function tooManyWaiting(): AnnalsError {
  return new AnnalsError('rate_limit_exceeded', `At most ${maxWaiting} jobs of a tenant wait. Try again later.`, {
    headers: { 'Retry-After': retryAfter },
  });
}

function jobNotFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no such job.');
}

/** The input of a job with the trace of the request that queued it. */
function withTrace(input: object): object {
  const trace = currentTrace();
  return trace === undefined ? input : { ...input, traceparent: traceparentOf(trace) };
}

/**
 * Runs a job in its own trace, linked to the trace that queued it: the job may run much later, and more than once.
 * Without a tracer it runs in the trace that queued it, for the log.
 */
async function runInTrace(
  tracer: Tracer | undefined,
  { id, type, tenant, attempt, input }: TakenJob,
  run: () => Promise<void>,
): Promise<void> {
  const { traceparent }: { traceparent?: unknown } = JSON.parse(input);
  const queuedIn = readTraceparent(traceparent);
  if (tracer === undefined) return await (queuedIn === undefined ? run() : enterTrace(queuedIn, run));
  const attributes = {
    'annals.job.id': id,
    'annals.job.type': type,
    'annals.job.attempt': attempt,
    'annals.tenant': tenant,
  };
  const span = tracer.begin(`job ${type}`, { kind: 'internal', link: queuedIn, attributes });
  let hasFailed = true;
  try {
    await enterTrace(span.context, run);
    hasFailed = false;
  } finally {
    span.end({ hasFailed });
  }
}
