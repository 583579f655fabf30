import type { ObserveCall } from '../providers/observed-calls.ts';
import type { Metrics } from './metrics.ts';

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
