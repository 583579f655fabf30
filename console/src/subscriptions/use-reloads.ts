import { useEffect } from 'preact/hooks';
import type { Requested } from '../api/use-request.ts';

/** Milliseconds between two looks. A tab that nobody sees does not look. */
const pause = 5_000;

/** Asks again for as long as the view is seen: states and counts move while changes are delivered. */
export function useReloads({ isLoading, reload }: Pick<Requested<unknown>, 'isLoading' | 'reload'>): void {
  useEffect(() => {
    if (isLoading) return;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') reload();
    }, pause);
    return () => clearInterval(timer);
  }, [isLoading]);
}
