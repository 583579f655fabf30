import { enterTrace, type Span, type Tracer } from './trace.ts';

/**
 * The spans of a batch: one for the whole, in a trace of its own, and one below it for each step. Without a tracer it does
 * nothing. A batch that never ends is not exported, for example a look that found nothing.
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
