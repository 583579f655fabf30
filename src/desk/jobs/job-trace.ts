import { currentTrace, enterTrace, readTraceparent, type Tracer, traceparentOf } from '../../core/concurrency/trace.ts';
import type { TakenJob } from './job-store.ts';

/** The input of a job with the trace of the request that queued it. */
export function withTrace(input: object): object {
  const trace = currentTrace();
  return trace === undefined ? input : { ...input, traceparent: traceparentOf(trace) };
}

/**
 * Runs a job in a trace of its own with a link to the trace that queued it: the job may run much later, and more than once.
 * Without a tracer it runs in the trace that queued it, for the log.
 */
export async function runInTrace(
  tracer: Tracer | undefined,
  { id, type, tenant, attempt, input }: TakenJob,
  run: () => Promise<void>,
): Promise<void> {
  const { traceparent }: { traceparent?: unknown } = JSON.parse(input);
  const queuedIn = readTraceparent(traceparent);
  if (tracer === undefined) return await (queuedIn === undefined ? run() : enterTrace(queuedIn, run));
  const attributes = {
    'annals.job.id': id,
    'annals.job.type': type,
    'annals.job.attempt': attempt,
    'annals.tenant': tenant,
  };
  const span = tracer.begin(`job ${type}`, { kind: 'internal', link: queuedIn, attributes });
  let hasFailed = true;
  try {
    await enterTrace(span.context, run);
    hasFailed = false;
  } finally {
    span.end({ hasFailed });
  }
}
