import type { Generated } from 'kysely';

interface CapturePositionTable {
  singleton: Generated<boolean>;
  system_identifier: string;
  timeline: number;
  slot: string;
  phase: 'preparing' | 'copying' | 'recording';
  commit_lsn: string;
  end_lsn: string;
  xid: number | null;
  committed_at: number | null;
  changes: number;
  complete: boolean;
  last_at: number;
  heartbeat: Date;
}

interface CaptureTableTable {
  name: string;
  relation: string;
  publication: string;
  identity: string;
  columns: string;
  partitions: string;
}

interface ChangeRecorderTable {
  tenant: string;
  recorder: Generated<number>;
  way: string;
  name: string;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    capture_position: CapturePositionTable;
    capture_table: CaptureTableTable;
    change_recorder: ChangeRecorderTable;
  }
}
