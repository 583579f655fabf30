import type pg from 'pg';
import { formatLsn, type Lsn } from './position.ts';

/** Bytes of queued messages at which reading from the socket pauses until half of them are taken. */
const maxWaitingBytes = 4 * 1024 * 1024;

/**
 * Milliseconds between status messages. The server closes silent connections after wal_sender_timeout (default 60 s).
 */
const statusInterval = 5_000;

const walData = 0x77;
const keepAlive = 0x6b;
/** Bytes of a data message's header: kind, two LSNs and a time. */
const headerLength = 25;

interface CopyData {
  readonly chunk: Buffer;
}

/**
 * A logical replication stream on a connection opened with `replication: 'database'`. Reads from the socket only as
 * fast as the caller takes messages, and reports only what `acknowledge` got as flushed (docs/decisions/capture.md).
 * Waiting throws once the connection is lost.
 *
 * @example
 * const stream = new ReplicationStream('annals', 'annals', start);
 * client.query(stream);
 * for (;;) handle(stream.take() ?? (await stream.untilMessage(250)));
 */
export class ReplicationStream {
  readonly #text: string;
  #flushed: Lsn;
  #connection: pg.Connection | undefined;
  #waiting: Buffer[] = [];
  #next = 0;
  #waitingBytes = 0;
  #paused = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastReceived = 0n;

  constructor(slot: string, publication: string, start: Lsn) {
    this.#flushed = start;
    this.#text =
      `START_REPLICATION SLOT "${slot}" LOGICAL ${formatLsn(start)} ` +
      `(proto_version '1', publication_names '"${publication}"', messages 'true')`;
  }

  /** The end of the server's WAL at its last message. */
  get serverEnd(): Lsn {
    return this.#lastReceived;
  }

  /** Called by the driver. */
  submit(connection: pg.Connection): void {
    this.#connection = connection;
    connection.query(this.#text);
    connection.stream.once('close', () => this.fail(new Error('the source closed the replication connection')));
    this.#timer = setInterval(() => this.#sendStatus(), statusInterval);
  }

  /** Called by the driver. The bytes are valid only during the call. */
  handleCopyData({ chunk }: CopyData): void {
    const kind = chunk[0];
    if (kind === keepAlive && chunk.length >= 18) {
      this.#lastReceived = chunk.readBigUInt64BE(1);
      if (chunk[17] === 1) this.#sendStatus();
    } else if (kind === walData && chunk.length >= headerLength) {
      this.#lastReceived = chunk.readBigUInt64BE(9);
      const data = Buffer.from(chunk.subarray(headerLength));
      this.#waiting.push(data);
      this.#waitingBytes += data.length;
      if (this.#waitingBytes >= maxWaitingBytes && !this.#paused) {
        this.#paused = true;
        this.#connection?.stream.pause();
      }
      this.#wake?.();
    } else {
      this.fail(new Error('the replication stream has a message of an unknown kind'));
    }
  }

  /** Called by the driver. */
  handleError(error: Error): void {
    this.fail(error);
  }

  /** Called by the driver when the server ends the stream. */
  handleReadyForQuery(): void {
    this.fail(new Error('the source ended the replication stream'));
  }

  /** Called by the driver. */
  handleCommandComplete(): void {}

  /** The next queued message. */
  take(): Buffer | undefined {
    const data = this.#waiting[this.#next];
    if (data === undefined) return undefined;
    this.#next += 1;
    this.#waitingBytes -= data.length;
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    } else if (this.#next >= 1024) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    if (this.#paused && this.#waitingBytes <= maxWaitingBytes / 2) {
      this.#paused = false;
      this.#connection?.stream.resume();
    }
    return data;
  }

  /**
   * Resolves when a message is queued, or after the timeout. Throws the error that ended the stream after the last
   * message.
   */
  async untilMessage(milliseconds: number): Promise<void> {
    if (this.#next < this.#waiting.length) return;
    if (this.#failure !== undefined) throw this.#failure;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
    clearTimeout(timer);
    if (this.#failure !== undefined && this.#next >= this.#waiting.length) throw this.#failure;
  }

  /** Ends the current `untilMessage`. */
  wake(): void {
    this.#wake?.();
  }

  /** Everything before this LSN is committed: the server need not retain it. */
  acknowledge(lsn: Lsn): void {
    if (lsn <= this.#flushed) return;
    this.#flushed = lsn;
    this.#sendStatus();
  }

  /** Ends the stream for its reader. The caller closes the connection. */
  fail(error: Error): void {
    this.#failure ??= error;
    clearInterval(this.#timer);
    this.#wake?.();
  }

  #sendStatus(): void {
    const stream = this.#connection?.stream;
    if (stream === undefined || !stream.writable || this.#failure !== undefined) return;
    // CopyData with a standby status update: written, flushed and applied LSN, time (ignored), no reply requested.
    const message = Buffer.alloc(5 + 34);
    message.write('d', 0, 'latin1');
    message.writeUInt32BE(4 + 34, 1);
    message.write('r', 5, 'latin1');
    for (const offset of [6, 14, 22]) message.writeBigUInt64BE(this.#flushed, offset);
    stream.write(message);
  }
}
