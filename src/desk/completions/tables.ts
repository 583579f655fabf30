import type { Generated } from 'kysely';

interface CompletionQuotaTable {
  tenant: string;
  input_used: Generated<number>;
  output_used: Generated<number>;
  input_reserved: Generated<number>;
  output_reserved: Generated<number>;
}

interface CompletionReservationTable {
  tenant: string;
  reservation: string;
  input: number;
  output: number;
  expires_at: Date;
  charged: Generated<boolean>;
  sent: Generated<boolean>;
}

interface CompletionRequestTable {
  tenant: string;
  client_id: string;
  key_hash: Uint8Array;
  attempt: string;
  fingerprint: Uint8Array;
  state: 'running' | 'succeeded' | 'failed';
  expires_at: Date;
  outcome: Uint8Array | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    completion_quota: CompletionQuotaTable;
    completion_reservation: CompletionReservationTable;
    completion_request: CompletionRequestTable;
  }
}
