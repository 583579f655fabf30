import { hash } from 'node:crypto';
import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import type { RecordedBy } from '../change.ts';
import type { ChangeSource } from './batch.ts';

/** The sealed content of a rejected change. */
export interface RejectedContent {
  /** As the source names it. */
  tenant: string;
  /** The change as a masked import line. */
  line: string;
  /** The identity in hexadecimal, if the line has no `id`. */
  identity?: string | undefined;
  /** The id of the client that sent it. */
  client?: string | undefined;
  /** Whether the recorder wrote the line from a row. */
  isRow?: boolean | undefined;
}

/** A rejected change as a row. Its id is deterministic, so a change that comes again is stored once. */
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
  const key = line ?? identity ?? `${source.position} ${reason}`;
  const id = hash('sha256', JSON.stringify(['annals:rejected', tenant, way, by, key]), 'hex').slice(0, 32);
  const content: RejectedContent | undefined =
    line === undefined ? undefined : { tenant, line, identity, client, isRow: source.isRow };
  const sealed =
    content === undefined
      ? null
      : sealer.seal(Buffer.from(JSON.stringify(content)), purposeOf(storedTenant, uuidOf(id)));
  return { id: uuidOf(id), position: source.position, reason, sealed };
}

/** Throws if no secret key opens it. The message names only the row. */
export function openRejected(sealer: Sealer, tenant: string, id: string, sealed: Uint8Array): RejectedContent {
  const content = tryOpenRejected(sealer, tenant, id, sealed);
  if (content === undefined) throw new Error(`no key of ANNALS_SECRET_KEY opens the rejected change ${id}`);
  return content;
}

/** Undefined if no secret key opens it. */
export function tryOpenRejected(
  sealer: Sealer,
  tenant: string,
  id: string,
  sealed: Uint8Array,
): RejectedContent | undefined {
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
