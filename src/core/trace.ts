import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The spans of a batch: one for the whole, in a trace of its own, and one below it for each step. Without a tracer it
 * does nothing. A batch that never ends, for example one without rows, is not exported.
 *
 * @example
 * const trace = new BatchTrace(tracer, 'relay');
 * trace.begin('read');
 * const rows = await readRows();
 * await trace.run('record', () => record(rows));
 * trace.end({ changes: rows.length });
 */
export class BatchTrace {
  readonly #tracer: Tracer | undefined;
  readonly #whole: Span | undefined;
  #step: Span | undefined;

  constructor(tracer: Tracer | undefined, name: string) {
    this.#tracer = tracer;
    this.#whole = tracer?.begin(name, { kind: 'internal' });
  }

  /** Begins a step. The one before it has ended. */
  begin(step: string): void {
    this.#step?.end();
    this.#step = this.#tracer?.begin(step, { kind: 'internal', parent: this.#whole?.context });
  }

  /** Runs the work as a step: its calls hand the trace on, and its log lines have it. */
  async run<Result>(step: string, work: () => Promise<Result>): Promise<Result> {
    this.begin(step);
    return this.#step === undefined ? await work() : await enterTrace(this.#step.context, work);
  }

  end({ changes, hasFailed = false }: { changes: number; hasFailed?: boolean }): void {
    this.#step?.end({ hasFailed });
    this.#whole?.end({ attributes: { 'annals.changes': changes }, hasFailed });
  }
}

/** Identifies a span of a trace, as W3C Trace Context does. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the spans of the trace are exported. */
  readonly isSampled: boolean;
  /** The header `tracestate` of other systems, which is propagated. */
  readonly state?: string | undefined;
}

interface SpanOptions {
  readonly kind: 'server' | 'client' | 'internal';
  /** Left out: the span begins a trace. */
  readonly parent?: TraceContext | undefined;
  /** A span of another trace that caused this one. */
  readonly link?: TraceContext | undefined;
  readonly attributes?: Readonly<Record<string, string | number>>;
}

/** A span that has begun. It must end once. */
export interface Span {
  readonly context: TraceContext;
  /** `name` replaces the name of the beginning. */
  end(result?: { name?: string; attributes?: Readonly<Record<string, string | number>>; hasFailed?: boolean }): void;
}

/** Attributes must not contain values of statements, tokens or texts of tenants. */
export interface Tracer {
  begin(name: string, options: SpanOptions): Span;
  /** Exports what has ended, for a limited time. */
  close(): Promise<void>;
}

const storage = new AsyncLocalStorage<TraceContext>({ name: 'annals trace' });

/** The trace that the caller works for, if there is one. */
export function currentTrace(): TraceContext | undefined {
  return storage.getStore();
}

/** Calls a function with `trace` as the current trace, also of everything it starts. */
export function enterTrace<Result>(trace: TraceContext, call: () => Result): Result {
  return storage.run(trace, call);
}

const form = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const maxStateLength = 512;

/** Reads the headers `traceparent` and `tracestate`. Undefined for anything that W3C Trace Context does not allow. */
export function readTraceparent(traceparent: unknown, tracestate?: unknown): TraceContext | undefined {
  const match = typeof traceparent === 'string' ? form.exec(traceparent) : null;
  if (match === null) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = match;
  // Only later versions may have more parts.
  if (version === '00' && more !== undefined) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  const hasState = typeof tracestate === 'string' && /^[\x20-\x7e]+$/.test(tracestate);
  return {
    traceId,
    spanId,
    isSampled,
    state: hasState && tracestate.length <= maxStateLength ? tracestate : undefined,
  };
}

/** The header `traceparent` that names a span as the parent. */
export function traceparentOf({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** The headers that propagate the current trace; none without a trace. */
export function traceHeaders(): Record<string, string> {
  const trace = currentTrace();
  if (trace === undefined) return {};
  return { traceparent: traceparentOf(trace), ...(trace.state === undefined ? {} : { tracestate: trace.state }) };
}
