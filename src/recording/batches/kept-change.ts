import { hash } from 'node:crypto';
import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import type { RecordedBy } from '../change.ts';
import type { ChangeSource } from './batch.ts';

/** What is sealed of a rejected change. */
export interface KeptChange {
  /** As the source names it. */
  tenant: string;
  /** The change as a line of an import, its masks applied. */
  line: string;
  /** The identity in hexadecimal, where the line has no `id`. */
  identity?: string | undefined;
  /** The id of the client that sent it. */
  client?: string | undefined;
  /** Whether the recorder made the line of a row. */
  isRow?: boolean | undefined;
}

/** A rejected change as a row. The same change that comes again has the same id, so it is kept once. */
export interface RejectedRow {
  id: string;
  position: string;
  reason: string;
  sealed: Uint8Array | null;
}

/** The tenant of rows whose tenant is unknown or malformed. No tenant has this name. */
export const unknownTenant = '';

export function rejectedRow(
  sealer: Sealer,
  {
    tenant,
    storedTenant,
    recordedBy,
    client,
  }: { tenant: string; storedTenant: string; recordedBy: RecordedBy; client?: string | undefined },
  { reason, source }: { reason: string; source: ChangeSource },
): RejectedRow {
  const line = source.line();
  const identity = source.identity === undefined ? undefined : Buffer.from(source.identity).toString('hex');
  const { way, by = '' } = recordedBy;
  const known = line ?? identity ?? `${source.position} ${reason}`;
  const id = hash('sha256', JSON.stringify(['annals:rejected', tenant, way, by, known]), 'hex').slice(0, 32);
  const kept: KeptChange | undefined =
    line === undefined ? undefined : { tenant, line, identity, client, isRow: source.isRow };
  const sealed =
    kept === undefined ? null : sealer.seal(Buffer.from(JSON.stringify(kept)), purposeOf(storedTenant, uuidOf(id)));
  return { id: uuidOf(id), position: source.position, reason, sealed };
}

/** Throws where none of the secret keys opens it. The message names the row and nothing else. */
export function openKept(sealer: Sealer, tenant: string, id: string, sealed: Uint8Array): KeptChange {
  const kept = findKept(sealer, tenant, id, sealed);
  if (kept === undefined) throw new Error(`no key of ANNALS_SECRET_KEY opens the rejected change ${id}`);
  return kept;
}

/** Undefined where none of the secret keys opens it. */
export function findKept(sealer: Sealer, tenant: string, id: string, sealed: Uint8Array): KeptChange | undefined {
  const text = sealer.open(sealed, purposeOf(tenant, id));
  return text && JSON.parse(Buffer.from(text).toString('utf8'));
}

export const sealedRejectedChanges: SealedColumn = {
  table: 'change_rejected',
  column: 'sealed',
  keys: ['tenant', 'id'],
  purposeOf: ({ tenant, id }) => purposeOf(String(tenant), String(id)),
};

function purposeOf(tenant: string, id: string): string {
  return `rejected change ${tenant} ${id}`;
}

/** As PostgreSQL writes it. */
function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
