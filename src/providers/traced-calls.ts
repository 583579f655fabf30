import { currentTrace, enterTrace, type Tracer } from '../core/concurrency/trace.ts';
import type { ObserveCall } from './observed-calls.ts';

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
