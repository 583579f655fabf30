import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';

/** Binds a key to its agent: in another row it cannot be decrypted. */
function purposeOf(tenant: string, id: string): string {
  return `agent ${tenant} ${id}`;
}

export function sealKey(sealer: Sealer, tenant: string, id: string, key: string): Uint8Array {
  return sealer.seal(Buffer.from(key, 'utf8'), purposeOf(tenant, id));
}

/** Undefined if no secret key decrypts it. */
export function openKey(sealer: Sealer, tenant: string, id: string, sealed: Uint8Array): string | undefined {
  const opened = sealer.open(sealed, purposeOf(tenant, id));
  return opened && Buffer.from(opened).toString('utf8');
}

export const sealedAgentKeys: SealedColumn = {
  table: 'agent',
  column: 'sealed_key',
  keys: ['tenant', 'id'],
  purposeOf: ({ tenant, id }) => purposeOf(String(tenant), String(id)),
};
