import { AnnalsError, type ErrorType } from '../../core/errors.ts';
import type { ExportFormat } from '../../core/export-history.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { AnsweredChat, QueuedChat } from '../queued-chat.ts';
import type { JobDocument } from './schemas.ts';

export type JobType = JobDocument['type'];

/** The input for the worker of an export. */
export interface ExportInput {
  q: string;
  format: ExportFormat;
  /** Left out in jobs from before there was a choice: false. */
  withContext?: boolean;
  /** Whether the file is a bundle; left out: no. */
  proof?: boolean;
  /** What the client may see; left out: everything. */
  restriction?: readonly WrittenRestriction[] | undefined;
  /** Milliseconds since 1970. */
  askedAt: number;
}

// The number of entries that a query finds is change history. The message of a failure can tell of entries, too.
const guardedOfExport = ['metadata.q', 'metadata.entries', 'metadata.bytes', 'metadata.error.message'];

/** What a client asks for. */
export interface AskedExport {
  q: string;
  format: ExportFormat;
  withContext?: boolean;
  proof?: boolean;
  restriction?: readonly WrittenRestriction[] | undefined;
  requestId: string;
  /** Whose export it is. */
  clientId: string;
}

/** A new job's document. `at` is in milliseconds since 1970. */
export function exportDocument(
  id: string,
  at: number,
  { q, format, withContext = false, proof = false, requestId, clientId }: AskedExport,
): JobDocument {
  const metadata = {
    ...createdMetadata(at),
    clientId,
    q,
    format,
    ...(withContext ? { context: true as const } : {}),
    ...(proof ? { proof: true as const } : {}),
    entries: 0,
    bytes: 0,
    guarded: guardedOfExport,
  };
  return { id, type: 'EXPORT', status: 'in_progress', requestId, metadata };
}

/** With `guardsMessage` the client's message may quote change history that its session has shown. */
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

/**
 * The job for clients that may not read the change history. Returns the same object where the job tells nothing of it.
 */
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

/** The error for the client. An internal fault shows no details. */
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
