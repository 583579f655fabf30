import { currentTrace, enterTrace, type Tracer } from '../core/concurrency/trace.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type LanguageModels, type ModelCall, ProviderError, type ProviderFault } from './port.ts';

/** How a call of a provider ended. `aborted`: nobody waited for the answer any more. */
export type CallOutcome = 'answered' | ProviderFault;

/** Follows a call of a provider. */
export interface CallObserver {
  /** Calls a function of the call in whatever it needs around it, a trace for example; default: calls it. */
  enter?<Result>(call: () => Result): Result;
  /** Called once. */
  end(outcome: CallOutcome): void;
}

/** Called when a call begins. */
export type ObserveCall = (call: ModelCall) => CallObserver;

/** The same models, with an observer of every call. */
export function observedCalls(models: LanguageModels, observe: ObserveCall): LanguageModels {
  return {
    untaken: models.untaken,

    async call(call, onText) {
      const observer = observe(call);
      // What the reader of the text throws: nobody waits for the answer any more.
      let outcome: CallOutcome = 'aborted';
      try {
        const answer = await enter(observer, () => models.call(call, onText));
        outcome = 'answered';
        return answer;
      } catch (error) {
        if (error instanceof ProviderError) outcome = error.fault;
        throw error;
      } finally {
        observer.end(outcome);
      }
    },
  };
}

function enter<Result>(observer: CallObserver, call: () => Result): Result {
  return observer.enter === undefined ? call() : observer.enter(call);
}

/** Makes a span of each call of a provider. The call hands it on. No span has texts, keys or addresses. */
export function tracedCalls(tracer: Tracer): ObserveCall {
  return ({ provider, model }) => {
    const span = tracer.begin(`chat ${model}`, {
      kind: 'client',
      parent: currentTrace(),
      attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': provider, 'gen_ai.request.model': model },
    });
    return {
      enter: (call) => enterTrace(span.context, call),
      end: (outcome) =>
        span.end({
          attributes: { 'annals.outcome': outcome },
          hasFailed: outcome !== 'answered' && outcome !== 'aborted',
        }),
    };
  };
}

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
export function quotaRefusalObserver(metrics: Metrics): (reason: 'used_up' | 'budget' | 'reserved') => void {
  for (const reason of ['used_up', 'budget', 'reserved']) metrics.count('annals_quota_refusals_total', { reason }, 0);
  return (reason) => metrics.count('annals_quota_refusals_total', { reason });
}
