import { type DestinationStream, destination } from 'pino';

/** Milliseconds that a line waits for others at most. */
const maxWait = 50;
/** Characters that wait for no more. To hand a batch to the thread that writes it costs the same, however long it is. */
const batchLength = 16_384;
/** At the start of a line that nobody should wait for. */
const urgent = /^\{"level":"(?:warn|error|fatal)"/m;

/**
 * Writes lines to a file descriptor and lets nobody wait for it. To write a line takes more processor time than to make
 * it, so lines are collected for a moment. A warning and an error go out at once, with the lines before them.
 */
export class LogStream implements DestinationStream {
  readonly #fd: number;
  readonly #destination;
  #lines = '';
  #timer: NodeJS.Timeout | undefined;
  #wantsMore = true;

  constructor(fd: number) {
    this.#fd = fd;
    this.#destination = destination({ fd, sync: false }).on('drain', () => {
      this.#wantsMore = true;
    });
  }

  /** Takes one or more lines. Returns false when it wants no more until its next `drain`. */
  write(lines: string): boolean {
    this.#lines += lines;
    if (this.#lines.length >= batchLength || urgent.test(lines)) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), maxWait).unref();
    return this.#wantsMore;
  }

  once(event: 'drain', listener: () => void): void {
    this.#destination.once(event, listener);
  }

  /** Writes what is left before it returns. */
  flushSync(): void {
    this.#destination.flushSync();
    destination({ fd: this.#fd, sync: true }).write(this.#takeLines());
  }

  #flush(): void {
    this.#wantsMore = this.#destination.write(this.#takeLines());
  }

  #takeLines(): string {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines;
    this.#lines = '';
    return lines;
  }
}

let stderr: LogStream | undefined;

/** Writes to stderr, which is where the log goes (contract: settings). A process that exits writes what is left. */
export function logStream(): LogStream {
  if (stderr === undefined) {
    const stream = new LogStream(2);
    process.on('exit', () => stream.flushSync());
    stderr = stream;
  }
  return stderr;
}
