import { AnnalsError, type ErrorType } from '../../core/errors.ts';
import type { ExportFormat, ExportRows } from '../../core/export-history.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { Credentials } from '../../http/credentials.ts';
import type { AnsweredChat, QueuedChat } from '../queued-chat.ts';
import type { JobDocument } from './schemas.ts';

export type JobType = JobDocument['type'];

/** The input for the worker of an export. */
export interface ExportInput {
  q: string;
  format: ExportFormat;
  /** Of a CSV file; left out: no byte order mark, and a row for each change. */
  bom?: boolean | undefined;
  rows?: ExportRows | undefined;
  /** Left out in jobs from before it existed: false. */
  withContext?: boolean;
  /** Whether the file is a bundle; left out: no. */
  proof?: boolean;
  /** Limits what the client may see; left out: no limit. */
  restriction?: readonly WrittenRestriction[] | undefined;
  /** The person who asked, whose next session has another client. */
  person?: Credentials['person'];
  /** Milliseconds since 1970. */
  askedAt: number;
}

// The number of matching entries is change history. The message of a failure can contain entries, too.
const guardedOfExport = ['metadata.q', 'metadata.entries', 'metadata.bytes', 'metadata.error.message'];

/** A client's request for an export. */
export interface ExportRequest {
  q: string;
  format: ExportFormat;
  bom?: boolean | undefined;
  rows?: ExportRows | undefined;
  withContext?: boolean;
  proof?: boolean;
  restriction?: readonly WrittenRestriction[] | undefined;
  /** Whether the client may read contexts; left out: no. */
  readsContext?: boolean;
  requestId: string;
  /** The client that owns the export, and its person. */
  clientId: string;
  person?: Credentials['person'];
}

/** A new job's document. `at` is in milliseconds since 1970. */
export function exportDocument(
  id: string,
  at: number,
  {
    q,
    format,
    bom,
    rows,
    withContext = false,
    usesContext = false,
    proof = false,
    requestId,
    clientId,
  }: ExportRequest & { readonly usesContext?: boolean },
): JobDocument {
  const metadata = {
    ...createdMetadata(at),
    clientId,
    q,
    format,
    ...(bom === undefined ? {} : { bom }),
    ...(rows === undefined ? {} : { rows }),
    ...(withContext ? { context: true as const } : {}),
    ...(usesContext ? { searchesContext: true as const } : {}),
    ...(proof ? { proof: true as const } : {}),
    entries: 0,
    bytes: 0,
    guarded: guardedOfExport,
  };
  return { id, type: 'EXPORT', status: 'in_progress', requestId, metadata };
}

/** Whether the file tells something of contexts: it has them, or its entries were found by them. */
export function needsContext({ context, searchesContext }: JobDocument['metadata']): boolean {
  return context === true || searchesContext === true;
}

/** With `guardsMessage` the client's message may quote change history from its session. */
export function chatDocument(
  id: string,
  at: number,
  chat: QueuedChat,
  { guardsMessage }: { guardsMessage: boolean },
): JobDocument {
  const { agentId, sessionId, requestId, message: request } = chat;
  return {
    id,
    type: 'AGENT_CHAT',
    status: 'in_progress',
    agentId,
    sessionId,
    requestId,
    request,
    metadata: { ...createdMetadata(at), ...(guardsMessage ? { guarded: ['request'] } : {}) },
  };
}

/** The document of a chat job that succeeded. */
export function answeredDocument(
  { metadata, ...job }: JobDocument,
  at: number,
  { message, response, fromHistory }: AnsweredChat,
): JobDocument {
  const guarded = fromHistory ? { guarded: [...(metadata.guarded ?? []), 'message', 'response'] } : {};
  const modifiedAt = new Date(at).toISOString();
  const version = metadata.version + 1;
  return { ...job, status: 'success', message, response, metadata: { ...metadata, version, modifiedAt, ...guarded } };
}

/** The job for clients that may not read the change history; the same object if it contains none. */
export function withoutHistory(document: JobDocument): JobDocument {
  const { guarded = [] } = document.metadata;
  if (guarded.length === 0) return document;
  const copy = structuredClone(document);
  for (const path of guarded) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    const holder = keys.reduce<unknown>((value, key) => (isObject(value) ? Reflect.get(value, key) : undefined), copy);
    if (isObject(holder)) Reflect.deleteProperty(holder, last);
  }
  return copy;
}

/** The error for the client, without details of internal faults. */
export function describeFailure(error: unknown): { type: ErrorType; message: string } {
  if (error instanceof AnnalsError && error.status !== 500) return { type: error.type, message: error.message };
  return { type: 'internal_service_error', message: 'An internal error occurred.' };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function createdMetadata(at: number): Pick<JobDocument['metadata'], 'version' | 'createdAt' | 'modifiedAt'> {
  const time = new Date(at).toISOString();
  return { version: 1, createdAt: time, modifiedAt: time };
}
