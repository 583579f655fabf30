import { currentTrace, enterTrace, type Tracer } from '../../core/trace.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { type OpenToolServer, ToolFailure } from './tool-server.ts';

/**
 * The same connections with each call counted by outcome and, with a tracer, in a span. Neither contains the names of
 * tools and servers, which tenants choose.
 */
export function observedToolServers(
  open: OpenToolServer,
  { metrics, tracer }: { metrics: Metrics | undefined; tracer: Tracer | undefined },
): OpenToolServer {
  async function observed<Result>(
    operation: 'list_tools' | 'execute_tool',
    call: () => Promise<Result>,
    hasFailed: (result: Result) => boolean,
  ): Promise<Result> {
    const attributes = { 'gen_ai.operation.name': operation };
    const span = tracer?.begin(operation, { kind: 'client', parent: currentTrace(), attributes });
    let outcome = 'answered';
    try {
      const result = await (span === undefined ? call() : enterTrace(span.context, call));
      if (hasFailed(result)) outcome = 'failed';
      return result;
    } catch (error) {
      outcome = error instanceof ToolFailure ? error.fault : 'bad_answer';
      throw error;
    } finally {
      metrics?.count('annals_tool_calls_total', { operation, outcome });
      const isFault = outcome !== 'answered' && outcome !== 'cancelled';
      span?.end({ attributes: { 'annals.outcome': outcome }, hasFailed: isFault });
    }
  }

  return async (address, signal) => {
    const server = await observed(
      'list_tools',
      () => open(address, signal),
      () => false,
    );
    return {
      ...server,
      call: async (tool, input, caller) =>
        await observed(
          'execute_tool',
          () => server.call(tool, input, caller),
          ({ isError }) => isError,
        ),
    };
  };
}
