import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';

/** Binds a sealed value to its row, so that it opens in no other. A tenant's name contains no blank. */
function purposeOf(tenant: string, key: string): string {
  return `configuration ${tenant} ${key}`;
}

export function sealSecret(sealer: Sealer, tenant: string, key: string, secret: string): Uint8Array {
  return sealer.seal(Buffer.from(secret, 'utf8'), purposeOf(tenant, key));
}

/** Throws if no secret key opens it. The message contains only the row's key. */
export function openSecret(sealer: Sealer, tenant: string, key: string, sealed: Uint8Array): string {
  const secret = sealer.open(sealed, purposeOf(tenant, key));
  if (secret === undefined) {
    throw new Error(`no key of ANNALS_SECRET_KEY opens the secured value of ${key} of tenant ${tenant}`);
  }
  return Buffer.from(secret).toString('utf8');
}

export const sealedConfiguration: SealedColumn = {
  table: 'configuration',
  column: 'sealed',
  keys: ['tenant', 'key'],
  purposeOf: ({ tenant, key }) => purposeOf(String(tenant), String(key)),
};
