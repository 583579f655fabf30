import { Annals } from '@annals/client';
import { setting } from './token.ts';

/**
 * A client of the demo's tenant, with the variables that "annals demo" prints. With `scope` it asks for these scopes only.
 *
 * @example
 * const annals = demoClient('changelog.changelog_read');
 */
export function demoClient(scope?: string): Annals {
  return new Annals({
    baseUrl: setting('ANNALS_URL'),
    tenant: 'demo',
    clientId: setting('ANNALS_CLIENT_ID'),
    clientSecret: setting('ANNALS_CLIENT_SECRET'),
    scope,
  });
}

if (import.meta.main) {
  const { totalElements } = await demoClient('changelog.changelog_read').history.list();
  console.log(`The demo's shop changed ${totalElements} times in the last 30 days.`);
}
