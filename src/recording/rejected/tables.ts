import type { Generated } from 'kysely';

interface ChangeRejectedTable {
  tenant: string;
  id: string;
  way: string;
  recorder: string | null;
  position: string;
  reason: string;
  sealed: Uint8Array | null;
  kept_at: Generated<Date>;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    change_rejected: ChangeRejectedTable;
  }
}
