import type { IncomingHttpHeaders } from 'node:http';
import type { Adapter } from './adapter.ts';
import type { WholeAnswer } from './answer-reader.ts';
import type { CallDeadline } from './deadline.ts';
import type { VendorError, VendorHeaders } from './port.ts';

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
  /** Whether those figures are the last ones, though the answer may not have ended. */
  hasLastUsage: boolean;
  /** A non-streamed answer read by our own reader. `fetch` then rejects, because the package has nothing to read. */
  wholeAnswer: WholeAnswer | undefined;
  /** An unsuccessful answer, or an error within a successful one (`hasBegun`), whose status is that of the error. */
  refusal: { status: number; retryAfter: string | undefined; body: string; hasBegun: boolean } | undefined;
  /** The headers that are passed on with an answer that is. */
  headers: VendorHeaders;
}

/** Reads the bytes of a stream and writes text for the caller. */
export interface BodyReader {
  read(bytes: Uint8Array): string;
  /** Reads the end of the stream. */
  end(): string;
  /** Whether the end mark or an error has been read. What follows is ignored. */
  readonly isOver: boolean;
  /** Whether the vendor has marked the answer as complete. */
  readonly isComplete: boolean;
  /** Whether any event was in the vendor's format. */
  readonly isKnown: boolean;
}

/** Passes an answer on as it was sent. */
export interface PassingReader extends BodyReader {
  /** Of an answer that is not streamed. */
  readonly limits: { readonly bytes: number; readonly values: number };
  /** Call it when the answer begins. */
  begin(exchange: HttpExchange, headers: IncomingHttpHeaders): void;
  /** Reads an answer that is not streamed. Returns whether it is one: what else it is is noted in the exchange. */
  whole(bytes: Buffer): Promise<boolean>;
  /** The error for the client; undefined where nothing of it may be shown. */
  errorIn(body: string): VendorError | undefined;
}

export type AnswerReading =
  | { readonly adapter: Pick<Adapter, 'answers' | 'usageIn'>; readonly passes?: undefined }
  | { readonly adapter?: undefined; readonly passes: PassingReader };

export interface FetchOptions {
  readonly streaming: boolean;
  /** Awaited once connected, before anything is sent. If it rejects, nothing is sent. */
  readonly beforeSend?: (() => Promise<void>) | undefined;
  /** Called when a stream begins with a successful status. */
  readonly onAnswering?: ((headers: VendorHeaders) => void) | undefined;
  readonly deadline: Pick<CallDeadline, 'heard' | 'paused'>;
  /** What reads the answer for a provider package, or passes it on. */
  readonly reader: AnswerReading;
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
    hasLastUsage: false,
    wholeAnswer: undefined,
    refusal: undefined,
    headers: {},
  };
}
