import { AnnalsError, type ErrorType } from '../errors.ts';
import type { ExportFormat, QueuedChat } from './ports.ts';

export type JobType = 'AGENT_CHAT' | 'EXPORT';
export type JobStatus = 'in_progress' | 'success' | 'failure' | 'skipped';

/** A job as clients see it (contract 8); what does not apply to its type is left out. */
export interface JobDocument {
  id: string;
  type: JobType;
  status: JobStatus;
  agentId?: string;
  sessionId?: string;
  requestId?: string;
  message?: string;
  response?: unknown;
  metadata: {
    createdAt: string;
    modifiedAt: string;
    /** Of an export. */
    q?: string;
    format?: ExportFormat;
    /** Change entries in its file so far. */
    entries?: number;
    /** Bytes of its file so far. */
    bytes?: number;
    /** Why it failed, as the error of an operation would say it. */
    error?: { type: ErrorType; message: string };
  };
}

/** What the worker of an export needs. */
export interface ExportInput {
  q: string;
  format: ExportFormat;
  /** Milliseconds since 1970. */
  askedAt: number;
}

/** A new job's document. `at` is in milliseconds since 1970. */
export function exportDocument(
  id: string,
  at: number,
  { q, format, requestId }: { q: string; format: ExportFormat; requestId: string },
): JobDocument {
  const metadata = { ...timesOf(at), q, format, entries: 0, bytes: 0 };
  return { id, type: 'EXPORT', status: 'in_progress', requestId, metadata };
}

export function chatDocument(id: string, at: number, chat: QueuedChat): JobDocument {
  const { agentId, sessionId, requestId, message } = chat;
  return {
    id,
    type: 'AGENT_CHAT',
    status: 'in_progress',
    agentId,
    sessionId,
    requestId,
    message,
    metadata: timesOf(at),
  };
}

/** What clients are told of a failure; of one inside of the service no more than that there was one. */
export function describeFailure(error: unknown): { type: ErrorType; message: string } {
  if (error instanceof AnnalsError && error.status !== 500) return { type: error.type, message: error.message };
  return { type: 'internal_service_error', message: 'An internal error occurred.' };
}

function timesOf(at: number): { createdAt: string; modifiedAt: string } {
  const time = new Date(at).toISOString();
  return { createdAt: time, modifiedAt: time };
}
