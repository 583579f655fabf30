import { sumCalls } from '../desk/calls/store.ts';
import { isRefusedAddress } from '../outbound/addresses.ts';
import type { DocumentLists } from '../pagination/paginator.ts';
import { type Configuration, createConfiguration } from '../tenants/configuration/service.ts';
import { createDocumentLists } from '../tenants/custom-entities/document-lists.ts';
import { createSchemaChecker } from '../tenants/custom-entities/schema-checker.ts';
import { type CustomEntities, createCustomEntities } from '../tenants/custom-entities/service.ts';
import { createUsage, type Usage } from '../tenants/usage/service.ts';
import type { Foundation } from './foundation.ts';

/** The configuration, custom entities and usage of tenants. */
export interface TenantServices {
  configuration: Configuration;
  customEntities: CustomEntities;
  documents: DocumentLists;
  usage: Usage;
}

/** Adds to `closing` what closes them. */
export function createTenants(foundation: Foundation, closing: AsyncDisposableStack): TenantServices {
  const { config, pool, db, sealer, logger, regexes, paginator, clock } = foundation;
  const now = () => clock.now();
  const refusesAddress = (url: string) => isRefusedAddress(new URL(url), { allowed: config.selfHostedAllow });
  const schemas = createSchemaChecker();
  const usage = createUsage({ pool, logger, now, sumCalls: (tenant) => sumCalls(db, tenant) });
  closing.defer(() => usage.close());
  return {
    configuration: createConfiguration({ pool, db, sealer, now, refusesAddress }),
    customEntities: createCustomEntities({ db, logger, regexes, paginator, schemas, now }),
    documents: createDocumentLists({ db, regexes, paginator }),
    usage,
  };
}
