import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import type { FastifyBaseLogger } from 'fastify';
import type pg from 'pg';
import type { Database, DatabaseTransaction } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';
import { AnnalsError } from '../errors.ts';
import type { Page, PageWanted } from '../pagination/paginator.ts';
import { readChunk } from './content-store.ts';
import { chatDocument, type ExportInput, exportDocument, type JobDocument } from './job.ts';
import { deleteJob, findForgottenJobs, findJob, insertJob, jobRows } from './job-store.ts';
import type { DocumentLists, ExportFormat, ExportHistory, JobReader, QueuedChat, RunChat } from './ports.ts';
import { createQueue } from './queue.ts';
import { createWorker } from './worker.ts';

const unpack = promisify(zstdDecompress);

/** A file to be sent as it is read. */
export interface JobContent {
  readonly format: ExportFormat;
  readonly bytes: number;
  pieces(): AsyncGenerator<Buffer>;
}

/** Jobs (contract 8): work that outlives the request that asked for it, and the process too. */
export interface Jobs {
  /** Makes an export of the change history; answers the job's id. Throws AnnalsError where `q` is no query. */
  startExport(tenant: string, asked: { q: string; format: ExportFormat; requestId: string }): Promise<string>;
  /**
   * Makes a job that runs the chat once the transaction is committed; answers its id. `guardsMessage`: its message may
   * quote the change history.
   */
  enqueueAgentChat(
    transaction: DatabaseTransaction,
    chat: QueuedChat,
    options: { guardsMessage: boolean },
  ): Promise<string>;
  /** Lets this process look at once for chats that have been queued, once their transaction is committed. */
  wakeAgentChats(): void;
  list(reader: JobReader, asked: { q?: string; fields?: string }, wanted: PageWanted): Promise<Page<string>>;
  /** JSON text. Throws resource_not_found. */
  find(reader: JobReader, id: string): Promise<string>;
  /** Deletes a job with its file; one that runs stops. Throws resource_not_found. */
  remove(tenant: string, id: string): Promise<void>;
  /** The file of an export that has succeeded. Throws resource_not_found, or conflict_resource where it goes on. */
  content(tenant: string, id: string): Promise<JobContent>;
  /** Makes what the queue needs in the database; before anything is queued. */
  prepare(): Promise<void>;
  /** Takes jobs up from now on. */
  work(): Promise<void>;
  /** Puts jobs into the queue that it does not know (any more). */
  upkeep(): Promise<void>;
  /** Hands back or ends what is being worked on. */
  close(): Promise<void>;
}

export interface JobsOptions {
  pool: pg.Pool;
  db: Database;
  logger: FastifyBaseLogger;
  now: () => number;
  documents: DocumentLists;
  exportHistory: ExportHistory;
  runChat: RunChat;
  /** Milliseconds that a chat may go on when the process is asked to end; tests wait less. */
  chatGrace?: number;
}

const defaultChatGrace = 20_000;
const maxAtOnce = 100;

export function createJobs(options: JobsOptions): Jobs {
  const { db, logger, now, documents, exportHistory, chatGrace = defaultChatGrace } = options;
  const queue = createQueue(options);
  const worker = createWorker(options);

  async function make(transaction: DatabaseTransaction, tenant: string, document: JobDocument, input: object) {
    const { id, type } = document;
    await insertJob(transaction, tenant, { document, input });
    await queue.send(transaction, type, { tenant, id });
    return id;
  }

  return {
    async startExport(tenant, { q, format, requestId }) {
      exportHistory.check(q);
      const askedAt = now();
      const document = exportDocument(randomUUID(), askedAt, { q, format, requestId });
      const input: ExportInput = { q, format, askedAt };
      const id = await inTransaction(db, (transaction) => make(transaction, tenant, document, input));
      queue.wake('EXPORT');
      return id;
    },

    async enqueueAgentChat(transaction, chat, visibility) {
      return await make(transaction, chat.tenant, chatDocument(randomUUID(), now(), chat, visibility), chat);
    },

    wakeAgentChats() {
      queue.wake('AGENT_CHAT');
    },

    async list(reader, asked, wanted) {
      return await documents.page(jobRows(reader), asked, wanted);
    },

    async find(reader, id) {
      const job = await findJob(db, reader, id);
      if (job === undefined) throw jobNotFound();
      return job.document;
    },

    async remove(tenant, id) {
      await inTransaction(db, async (transaction) => {
        const type = await deleteJob(transaction, tenant, id);
        if (type === undefined) throw jobNotFound();
        await queue.forget(transaction, type, id);
      });
    },

    async content(tenant, id) {
      const job = await findJob(db, { tenant, readsHistory: true }, id);
      if (job === undefined) throw jobNotFound();
      if (job.type !== 'EXPORT') throw new AnnalsError('resource_not_found', 'This job has no content.');
      if (job.status === 'in_progress') throw new AnnalsError('conflict_resource', 'The export has not ended yet.');
      if (job.status !== 'success')
        throw new AnnalsError('resource_not_found', 'The export failed: it has no content.');
      const { metadata }: JobDocument = JSON.parse(job.document);
      return {
        format: metadata.format ?? 'NDJSON',
        bytes: metadata.bytes ?? 0,
        pieces: () => readPieces(db, tenant, id),
      };
    },

    prepare: () => queue.prepare(),
    work: () => queue.work(worker.handlers),

    async upkeep() {
      const forgotten = await findForgottenJobs(db, maxAtOnce);
      for (const { tenant, id, type } of forgotten) {
        logger.warn({ tenant, job: id }, 'the queue did not know a job that has not ended; it is queued again');
        await inTransaction(db, async (transaction) => {
          await queue.forget(transaction, type, id);
          await queue.send(transaction, type, { tenant, id });
        });
      }
    },

    async close() {
      worker.stop(chatGrace);
      await queue.close();
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

function jobNotFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no such job.');
}
