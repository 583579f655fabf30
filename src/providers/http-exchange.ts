import type { Adapter } from './adapter.ts';
import type { WholeAnswer } from './answer-reader.ts';
import type { CallDeadline } from './deadline.ts';

/** The state of one call's HTTP request. The possible cost of the call is derived from it. */
export interface HttpExchange {
  /** Whether a part of the request may have reached the provider. */
  left: boolean;
  /** The number of requests. The reservation covers the cost of one request only. */
  requests: number;
  /** The status of the answer, once it has begun. */
  status: number | undefined;
  /** Whether a success was read to its end, whatever it contains. */
  answered: boolean;
  /** Whether a stream ended too early. The parts before that were passed on. */
  cut: boolean;
  /** Whether the answer is complete and has nothing of the vendor's format. */
  isForeign: boolean;
  /** The vendor's usage object so far. A later event of a stream replaces the figures of an earlier one. */
  usage: object;
  /** An answer in one piece that our own reader has read. The `fetch` then rejects, because the package has nothing to read. */
  wholeAnswer: WholeAnswer | undefined;
  /** An answer that is not a success, or an error in a success, which `hasBegun`. Then the status is what the error says. */
  refusal: { status: number; retryAfter: string | undefined; body: string; hasBegun: boolean } | undefined;
}

export interface FetchOptions {
  readonly streaming: boolean;
  /** Awaited when the connection is there, before anything is sent. If it rejects, nothing is. */
  readonly beforeSend?: (() => Promise<void>) | undefined;
  /** Called when a stream begins with a status of success. */
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
