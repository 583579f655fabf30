import type { Generated } from 'kysely';

interface JobTable {
  tenant: string;
  id: string;
  type: 'AGENT_CHAT' | 'EXPORT';
  status: 'in_progress' | 'success' | 'failure' | 'skipped';
  /** The job as JSON text, as it goes out to clients that may not read the change history. */
  document: string;
  /** The same as jsonb, for filters and sorting. */
  fields: string;
  /** As it goes out to clients that may; null where that is the same. */
  full_document: string | null;
  full_fields: string | null;
  /** What its worker needs, as JSON text. */
  input: string;
  /** The order of a tenant's jobs. */
  queued_at: Generated<Date>;
  /** How long its worker counts as alive; null while it waits for one. */
  held_until: Date | null;
  attempt: number;
  stalled: number;
  call_began: boolean;
  snapshot: string | null;
  since: number | null;
  last_at: number | null;
  last_sequence: number | null;
}

interface JobChunkTable {
  tenant: string;
  job: string;
  chunk: number;
  /** Of the content unpacked. */
  bytes: number;
  content: Uint8Array;
}

declare module '../db/tables.ts' {
  interface Tables {
    job: JobTable;
    job_chunk: JobChunkTable;
  }
}
