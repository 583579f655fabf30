import type { FastifyBaseLogger } from 'fastify';
import type { Sealer } from '../../core/sealing.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { Database } from '../../postgres/database.ts';
import { forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import { allProviderItems } from './item.ts';
import { sealSecret } from './secrets.ts';
import { findUnsecured, replaceBySealed, tenantsWithUnsecured } from './store.ts';

export interface TokenSealing {
  readonly db: Database;
  readonly sealer: Sealer;
}

/** Seals, before the server answers, keys of providers that are from before their items were always secured. */
export async function sealTokensAtStart(app: HttpServer, sealing: TokenSealing): Promise<void> {
  app.addHook('onReady', async () => await sealProviderTokens(sealing, app.log));
}

/** Idempotent, also where several processes do it at once. It is no change of the item and has no change entry. */
async function sealProviderTokens(sealing: TokenSealing, logger: Pick<FastifyBaseLogger, 'warn'>): Promise<void> {
  const tenants = await tenantsWithUnsecured(sealing.db, allProviderItems);
  await forEachTenant(tenants, (tenant) => sealTokensOf(sealing, tenant, logger));
}

async function sealTokensOf(
  { db, sealer }: TokenSealing,
  tenant: string,
  logger: Pick<FastifyBaseLogger, 'warn'>,
): Promise<void> {
  for (const { key, value } of await findUnsecured(db, tenant, allProviderItems)) {
    const parsed: unknown = JSON.parse(value);
    const secret = typeof parsed === 'string' ? parsed : value;
    const sealed = sealSecret(sealer, tenant, key, secret);
    if (!(await replaceBySealed(db, { tenant, key, value, sealed }))) continue;
    logger.warn(
      { tenant, key },
      'a provider token that was not secured is sealed now; older change entries still show it: replace it at the provider',
    );
  }
}
