import type { Adapter } from './adapter.ts';
import type { WholeAnswer } from './answer-reader.ts';
import type { CallDeadline } from './deadline.ts';

/** The state of one call's HTTP request, from which the call's possible cost is derived. */
export interface HttpExchange {
  /** Whether any part of the request may have reached the provider. */
  left: boolean;
  /** The number of requests. The reservation covers one. */
  requests: number;
  /** The status of the answer, once it has begun. */
  status: number | undefined;
  /** Whether a successful answer was read to its end. */
  answered: boolean;
  /** Whether a stream was truncated after its first parts were passed on. */
  cut: boolean;
  /** Whether the answer is complete but nothing in it is in the vendor's format. */
  isForeign: boolean;
  /** The vendor's usage object so far. Later stream events override earlier figures. */
  usage: object;
  /** A non-streamed answer read by our own reader. `fetch` then rejects, because the package has nothing to read. */
  wholeAnswer: WholeAnswer | undefined;
  /** An unsuccessful answer, or an error within a successful one (`hasBegun`), whose status is that of the error. */
  refusal: { status: number; retryAfter: string | undefined; body: string; hasBegun: boolean } | undefined;
}

export interface FetchOptions {
  readonly streaming: boolean;
  /** Awaited once connected, before anything is sent. If it rejects, nothing is sent. */
  readonly beforeSend?: (() => Promise<void>) | undefined;
  /** Called when a stream begins with a successful status. */
  readonly onAnswering?: (() => void) | undefined;
  readonly deadline: Pick<CallDeadline, 'heard' | 'paused'>;
  readonly adapter: Pick<Adapter, 'answers' | 'usageIn'>;
}

export function newExchange(): HttpExchange {
  return {
    left: false,
    requests: 0,
    status: undefined,
    answered: false,
    cut: false,
    isForeign: false,
    usage: {},
    wholeAnswer: undefined,
    refusal: undefined,
  };
}
