import { randomUUIDv7 } from 'node:crypto';
import type { BegunCall, EndOfCall } from '../../../src/providers/call-record.ts';
import type { FailedUsage } from '../../../src/providers/port.ts';

/** A call that is about to leave. */
export function begunCall(): BegunCall {
  const id = randomUUIDv7();
  return {
    id,
    at: Date.now(),
    operation: 'completion',
    token: 'shared',
    provider: 'openai',
    model: 'm',
    clientId: 'c',
    price: undefined,
  };
}

/** The end of a call that used so much. */
export function endedCall(usage: FailedUsage): EndOfCall {
  const reported = typeof usage === 'object' ? usage : { inputTokens: undefined, outputTokens: undefined };
  return { usage, reported, durationMs: 1, finishReason: 'stop' };
}
