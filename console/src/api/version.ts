import { signal } from '@preact/signals';

/** Whether the service has a newer console than this tab. */
export const isOutdated = signal(false);

/** The version of this tab, which the service writes into the page. */
const own = document.querySelector('meta[name="annals-console-version"]')?.getAttribute('content');

export function noteVersion(headers: Headers): void {
  const current = headers.get('annals-console-version');
  if (own !== undefined && own !== null && current !== null && current !== own) isOutdated.value = true;
}
