import { currentTrace, enterTrace, type Tracer } from '../core/trace.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type LanguageModels, type ModelCall, ProviderError, type ProviderFault } from './port.ts';

/** How a call of a provider ended. `aborted`: its caller left. `unsent`: `beforeSend` rejected, so nothing was sent. */
export type CallOutcome = 'answered' | 'unsent' | ProviderFault;

/** Observes one call of a provider. */
export interface CallObserver {
  /** Wraps the functions of the call, in a trace for example; left out: calls them directly. */
  enter?<Result>(call: () => Result): Result;
  /** Called once. */
  end(outcome: CallOutcome): void;
}

/** Called when a call begins. */
export type ObserveCall = (call: ModelCall) => CallObserver;

/** The same models with an observer on every call. */
export function observedCalls(models: LanguageModels, observe: ObserveCall): LanguageModels {
  return {
    unsupported: models.unsupported,

    async call(call, onText) {
      const observer = observe(call);
      // The reader of the text throws when its caller has left.
      let outcome: CallOutcome = 'aborted';
      let isUnsent = false;
      const { beforeSend } = call;
      const watched = beforeSend && {
        beforeSend: async () => {
          isUnsent = true;
          await beforeSend();
          isUnsent = false;
        },
      };
      try {
        const answer = await enter(observer, () => models.call({ ...call, ...watched }, onText));
        outcome = 'answered';
        return answer;
      } catch (error) {
        if (isUnsent) outcome = 'unsent';
        else if (error instanceof ProviderError) outcome = error.fault;
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

/** Traces each call of a provider in a span, without texts, keys or addresses. */
export function tracedCalls(tracer: Tracer): ObserveCall {
  return ({ provider, model, passThrough }) => {
    const operation = passThrough?.operation === 'embeddings' ? 'embeddings' : 'chat';
    const span = tracer.begin(`${operation} ${model}`, {
      kind: 'client',
      parent: currentTrace(),
      attributes: {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': provider,
        'gen_ai.request.model': model,
      },
    });
    return {
      enter: (call) => enterTrace(span.context, call),
      end: (outcome) =>
        span.end({
          attributes: { 'annals.outcome': outcome },
          hasFailed: outcome !== 'answered' && outcome !== 'aborted' && outcome !== 'unsent',
        }),
    };
  };
}

/** Counts the calls that reached a provider by outcome, and measures their duration. */
export function providerCallObserver(metrics: Metrics): ObserveCall {
  return ({ provider }) => {
    const begun = performance.now();
    return {
      end(outcome) {
        if (outcome === 'unsent') return;
        metrics.count('annals_provider_calls_total', { provider, outcome });
        metrics.observe('annals_provider_call_duration_seconds', { provider }, (performance.now() - begun) / 1000);
      },
    };
  };
}

/**
 * Counts refusals by the quota. The counters start at 0: an alert would miss the increase of a counter that appears
 * with its first refusal.
 */
export function quotaRefusalObserver(metrics: Metrics): (reason: 'used_up' | 'budget' | 'reserved') => void {
  for (const reason of ['used_up', 'budget', 'reserved']) metrics.count('annals_quota_refusals_total', { reason }, 0);
  return (reason) => metrics.count('annals_quota_refusals_total', { reason });
}
