import { Annals } from '@annals/client';
import { computed } from '@preact/signals';
import { apiUrl } from './connection.ts';
import { giveWay } from './requests.ts';
import { session, sessionFetch } from './session.ts';

const client = computed(() => {
  const tenant = session.value?.tenant;
  if (tenant === undefined) return undefined;
  return new Annals({
    baseUrl: apiUrl,
    tenant,
    token: () => 'session',
    fetch: sessionFetch,
    maxRetries: 2,
    pause: giveWay,
  });
});

/**
 * The service, called for the session. `annals().exact` keeps the digits of numbers and the order of members.
 *
 * @example
 * const page = useRequest(q, (signal) => annals().exact.history.list({ q }, { signal }));
 */
export function annals(): Annals {
  if (client.value === undefined) throw new Error('You are not signed in.');
  return client.value;
}
