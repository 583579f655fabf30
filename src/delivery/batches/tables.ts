import type { Generated } from 'kysely';

interface DeliveryBatchTable {
  tenant: string;
  subscription: string;
  kind: ReaderKind;
  position: number;
  fingerprint: number;
  until: number;
  first: number;
  last: number;
  changes: number;
  key: string;
  begun_at: Date;
  hashes: Generated<string[]>;
  attempts: Generated<number>;
  due_at: Date;
  receipt: string | null;
  taken_at: Date | null;
}

/** A subscription has a live reader, and may have a replay. */
export type ReaderKind = 'live' | 'replay';

interface DeliveryObjectTable {
  tenant: string;
  subscription: string;
  /** `2026-11-23`: text, since a Date has a time zone. */
  day: string;
  first: number;
  last: number;
  changes: number;
  sha256: string;
}

interface DeliveryManifestTable {
  tenant: string;
  subscription: string;
  day: string;
  attempts: Generated<number>;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    delivery_batch: DeliveryBatchTable;
    delivery_object: DeliveryObjectTable;
    delivery_manifest: DeliveryManifestTable;
  }
}
