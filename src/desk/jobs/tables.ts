import type { Generated } from 'kysely';

interface JobTable {
  tenant: string;
  id: string;
  type: 'AGENT_CHAT' | 'EXPORT';
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
