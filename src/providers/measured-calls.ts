import type { Metrics } from '../metrics/metrics.ts';
import type { ObserveCall } from './observed-calls.ts';

/** Counts calls of providers by their outcome and measures their time. */
export function providerCallObserver(metrics: Metrics): ObserveCall {
  return ({ provider }) => {
    const begun = performance.now();
    return {
      end(outcome) {
        metrics.count('annals_provider_calls_total', { provider, outcome });
        metrics.observe('annals_provider_call_duration_seconds', { provider }, (performance.now() - begun) / 1000);
      },
    };
  };
}

/**
 * Counts refusals of the quota. The counters begin at 0: if a counter appeared only with its first refusal, no alert
 * would see an increase.
 */
export function quotaRefusalObserver(metrics: Metrics): (reason: 'used_up' | 'reserved') => void {
  for (const reason of ['used_up', 'reserved']) metrics.count('annals_quota_refusals_total', { reason }, 0);
  return (reason) => metrics.count('annals_quota_refusals_total', { reason });
}
