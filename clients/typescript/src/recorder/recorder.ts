import type { RecordedCounts } from '../schemas.ts';
import { ApiError, isRecord } from '../transport/api-error.ts';
import { path } from '../transport/request.ts';
import { backOff } from '../transport/retry.ts';
import type { Transport } from '../transport/transport.ts';
import { orAborted, sleep } from '../transport/waiting.ts';
import { ChangeLines, changeOfEvent, joined, type NewChange, type NewEvent } from './change-line.ts';
import { ChangeQueue } from './change-queue.ts';
import { gzipped } from './gzipped.ts';
import { onPageHidden } from './page-hidden.ts';

export interface RecorderOptions {
  /** Milliseconds that a change waits for others to share its request; left out: 200. */
  readonly delay?: number | undefined;
  /** Changes of a request: 1 to 2,000; left out: 2,000. */
  readonly batch?: number | undefined;
  /** Changes that wait, not committed yet, before `record` makes its caller wait; left out: 10,000. */
  readonly buffer?: number | undefined;
  /** Milliseconds that `flush` and `close` wait without any change being committed; left out: 60,000. */
  readonly timeout?: number | undefined;
  /** A change can never be recorded. The service keeps it where it could read it. */
  readonly onRejected?: ((rejected: { readonly line: string; readonly reason: string }) => void) | undefined;
  /** An attempt failed and will be repeated after `delay` milliseconds. */
  readonly onRetry?: ((error: ApiError, delay: number) => void) | undefined;
}

/** What became of the changes: the sums over all requests. */
export type RecorderCounts = Omit<RecordedCounts, 'rejected'> & { readonly rejected: number };

/** Bytes: a request may have twice as many. */
const maxBatchBytes = 4 * 1024 * 1024;
/** Maximum bytes of changes that wait, and of what `fetch` sends when the page is closed. */
const maxBufferBytes = 32 * 1024 * 1024;
const maxKeepaliveBytes = 60 * 1024;

/**
 * Records changes in batches and in their order, each exactly once: an id is made once and kept over all attempts, and
 * a batch goes out when the one before it is committed. What passes (the service is away, or asks to wait) is repeated
 * until it succeeds. What does not (the client may not record) ends the recorder.
 *
 * In Node a program that ends by itself has sent everything before. Before `process.exit` and after a signal: `close`.
 */
export class Recorder {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #options: RecorderOptions;
  readonly #lines = new ChangeLines();
  readonly #queue: ChangeQueue;
  readonly #stop = new AbortController();
  readonly #counts = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: 0 };
  readonly #stopListening: () => void;
  #isSending = false;
  #hurry = new AbortController();
  #isClosed = false;
  #failure: unknown;
  /** Of the attempts since the last one that was committed. */
  #lastError: ApiError | undefined;

  constructor(transport: Transport, tenant: string, options: RecorderOptions) {
    this.#transport = transport;
    this.#path = path`/recorder/${tenant}/changes`;
    this.#options = options;
    this.#queue = new ChangeQueue({ changes: options.buffer ?? 10_000, bytes: maxBufferBytes });
    this.#stopListening = onPageHidden(() => this.#sendKeptAlive());
  }

  /**
   * Takes a change, and resolves as soon as there is room for the next one: await it, so that a service that is slower
   * than your application slows it down. The change is read before this returns, so it may be altered afterwards.
   */
  async record(change: NewChange): Promise<void> {
    if (this.#isClosed) throw new Error('The recorder is closed.');
    this.#throwFailure();
    this.#queue.push(this.#lines.write(change));
    if (this.#queue.length >= this.#batch) this.#hurry.abort();
    if (!this.#isSending) void this.#sendAll();
    await this.#queue.room();
    this.#throwFailure();
  }

  /**
   * Takes something that happened and changed nothing, as `record` does. It is recorded as the creation of a document.
   *
   * @example
   * await recorder.event({ entity: 'sign-in', actor: 'Jane Doe', actorId: 'u-17', context: { ip: '203.0.113.7' } });
   */
  async event(event: NewEvent): Promise<void> {
    await this.record(changeOfEvent(event));
  }

  /**
   * Waits until everything that was recorded before is committed. The signal ends the wait, and not the sending. So
   * does `timeout`, which restarts whenever a change is committed: then it rejects with the error of the last
   * attempt.
   */
  async flush({ signal }: { readonly signal?: AbortSignal } = {}): Promise<RecorderCounts> {
    this.#throwFailure();
    this.#hurry.abort();
    await this.#committed(signal);
    this.#throwFailure();
    return { ...this.#counts };
  }

  /** Takes no more changes, and waits until all are committed. The signal gives up: `unsent` then has what is left. */
  async close(options: { readonly signal?: AbortSignal } = {}): Promise<RecorderCounts> {
    this.#isClosed = true;
    try {
      return await this.flush(options);
    } finally {
      this.#stop.abort(options.signal?.reason);
      this.#stopListening();
    }
  }

  /** The changes that are not known to be committed, as lines that `annals import` takes. */
  unsent(): string[] {
    const decoder = new TextDecoder();
    return this.#queue.lines.map((line) => decoder.decode(line).trimEnd());
  }

  /**
   * Waits as `flush` says. In a browser a page whose origin the recorder does not allow looks like a service that is
   * away.
   */
  async #committed(signal: AbortSignal | undefined): Promise<void> {
    const timeout = this.#options.timeout ?? 60_000;
    const isCommitted = this.#queue.committed().then(() => true);
    for (;;) {
      const before = this.#counts.read;
      const ended = new AbortController();
      const isLate = sleep(timeout, ended.signal).then(
        () => false,
        () => true,
      );
      try {
        if (await orAborted(Promise.race([isCommitted, isLate]), signal)) return;
      } finally {
        ended.abort();
      }
      if (this.#counts.read > before) continue;
      throw this.#lastError ?? new ApiError('timeout', `Nothing was committed within ${timeout} ms.`);
    }
  }

  get #batch(): number {
    return this.#options.batch ?? 2_000;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    try {
      while (this.#queue.length > 0) {
        await this.#gather();
        await this.#send(this.#queue.first({ changes: this.#batch, bytes: maxBatchBytes }));
      }
    } catch (error) {
      this.#failure = error;
      this.#queue.release();
    } finally {
      this.#isSending = false;
    }
  }

  /** Waits for more changes, unless there are enough of them or somebody waits for those that there are. */
  async #gather(): Promise<void> {
    const isEnough = this.#queue.length >= this.#batch || this.#queue.bytes >= maxBatchBytes;
    if (!isEnough && !this.#queue.isAwaited)
      await sleep(this.#options.delay ?? 200, this.#hurry.signal).catch(() => {});
    this.#hurry = new AbortController();
  }

  /** Sends lines that stand first in the queue, until they are committed. */
  async #send(lines: readonly Uint8Array[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#taken(await this.#post(lines), lines);
        return;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.status === 413) return await this.#sendParts(lines, error);
        if (!passes(error)) throw error;
        this.#lastError = error;
        const delay = backOff(attempt, error.retryAfter);
        this.#options.onRetry?.(error, delay);
        await sleep(delay, this.#stop.signal);
      }
    }
  }

  /** A request that passes a limit is divided. A change that passes it alone can never be recorded. */
  async #sendParts(lines: readonly Uint8Array[], error: ApiError): Promise<void> {
    const [line] = lines;
    if (lines.length > 1) {
      const half = Math.ceil(lines.length / 2);
      await this.#send(lines.slice(0, half));
      await this.#send(lines.slice(half));
    } else if (line !== undefined) {
      const counts = { recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0 };
      this.#taken({ read: 1, ...counts, rejected: [{ index: 0, reason: error.message }] }, lines);
    }
  }

  async #post(lines: readonly Uint8Array[]): Promise<RecordedCounts> {
    const { content, encoding } = await gzipped(joined(lines));
    const body = { type: 'application/x-ndjson', content };
    const headers = { 'content-encoding': encoding };
    return await this.#transport.fetchJson<RecordedCounts>(
      { method: 'POST', path: this.#path, headers, body, isResult: isAllRejected },
      { maxRetries: 0, signal: this.#stop.signal },
    );
  }

  #taken({ rejected, ...counts }: RecordedCounts, lines: readonly Uint8Array[]): void {
    this.#lastError = undefined;
    this.#queue.drop(lines.length);
    for (const name of ['read', 'recorded', 'unchanged', 'duplicate', 'expired', 'ignored'] as const) {
      this.#counts[name] += counts[name];
    }
    this.#counts.rejected += rejected.length;
    for (const { index, reason } of rejected) {
      const line = new TextDecoder().decode(lines[index]).trimEnd();
      this.#options.onRejected?.({ line, reason });
    }
  }

  /** A page that is left cannot wait. What arrives twice is recorded once, so nothing is taken out of the queue. */
  #sendKeptAlive(): void {
    const lines = this.#queue.first({ changes: this.#batch, bytes: maxKeepaliveBytes });
    const content = joined(lines);
    if (content.length === 0 || content.length > maxKeepaliveBytes) return;
    const body = { type: 'application/x-ndjson', content };
    const request = { method: 'POST', path: this.#path, body, keepalive: true } as const;
    this.#transport.send(request, { maxRetries: 0 }).catch(() => {});
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** A 400 with `rejected` is the answer where every change was rejected: the service stored them. */
function isAllRejected(status: number, body: string): boolean {
  if (status !== 400) return false;
  try {
    const answer: unknown = JSON.parse(body);
    return isRecord(answer) && Array.isArray(answer.rejected);
  } catch {
    return false;
  }
}

/** Whether a later attempt may succeed. It cannot if the service refuses the client or the request. */
function passes({ status, type }: ApiError): boolean {
  return status === undefined ? type !== 'invalid_answer' : status === 408 || status === 429 || status >= 500;
}
