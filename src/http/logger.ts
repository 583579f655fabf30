import { type DestinationStream, destination, type LogFn, type Logger, pino } from 'pino';
import { AnnalsError } from '../core/errors.ts';
import { mask } from '../core/sealing.ts';
import { currentTrace } from '../core/trace.ts';
import { isAtLimit, isReadOnly, isUnreachable, isWorkerUnreachable } from '../postgres/connections/unreachable.ts';

/** Maximum milliseconds that a line is buffered. */
const maxWait = 50;
/** Characters after which the buffer is written. A write costs the same however long it is. */
const batchLength = 16_384;
/** Lines that are written at once. */
const urgent = /^\{"level":"(?:warn|error|fatal)"/m;

/**
 * Writes lines to a file descriptor asynchronously. Writing a line takes more processor time than making it, so lines
 * are buffered briefly; a warning or an error flushes the buffer.
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

  /** Takes one or more lines. Returns false when it is full until its next `drain`. */
  write(lines: string): boolean {
    this.#lines += lines;
    if (this.#lines.length >= batchLength || urgent.test(lines)) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), maxWait).unref();
    return this.#wantsMore;
  }

  once(event: 'drain', listener: () => void): void {
    this.#destination.once(event, listener);
  }

  /** Writes the rest synchronously. */
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

/** Writes to stderr, the destination of the log (contract: settings). Flushed at the exit of the process. */
export function logStream(): LogStream {
  if (stderr === undefined) {
    const stream = new LogStream(2);
    process.on('exit', () => stream.flushSync());
    stderr = stream;
  }
  return stderr;
}

/** Milliseconds without the line after which a state ends. */
const quiet = 10_000;
const everyMinute = 60_000;
const checkEvery = 5_000;
/** Lines of further states are not merged. */
const maxStates = 100;

interface State {
  /** Writes the line with the number of its repetitions. */
  write(repeated: number): void;
  repeated: number;
  lastAt: number;
  writtenAt: number;
}

/**
 * While the database or a worker of a cluster is away, or read-only, everything that needs it fails with the same
 * warning. The first one is written at once; repetitions are counted, and a line has their number (`repeated`) each
 * minute and at the end. Errors are never merged: each 500 has its own line.
 */
class RepeatedLines {
  readonly #states = new Map<string, State>();
  #timer: NodeJS.Timeout | undefined;

  /** For pino's hook `logMethod`. */
  log(logger: Logger, args: Parameters<LogFn>, method: LogFn, isWarning: boolean): void {
    const line = isWarning ? lineOf(args) : undefined;
    if (line === undefined) {
      method.apply(logger, args);
      return;
    }
    const { fields, message, error } = line;
    const key = `${message} ${workerOf(error)}`;
    const now = performance.now();
    const known = this.#states.get(key);
    if (known !== undefined) {
      known.repeated += 1;
      known.lastAt = now;
      return;
    }
    method.apply(logger, args);
    if (this.#states.size >= maxStates) return;
    const write = (repeated: number) => method.apply(logger, [{ ...fields, repeated }, message]);
    this.#states.set(key, { write, repeated: 0, lastAt: now, writtenAt: now });
    this.#timer ??= setInterval(() => this.#check(performance.now()), checkEvery).unref();
  }

  #check(now: number): void {
    for (const [key, state] of this.#states) {
      const isOver = now - state.lastAt >= quiet;
      if (state.repeated > 0 && (isOver || now - state.writtenAt >= everyMinute)) {
        state.write(state.repeated);
        state.repeated = 0;
        state.writtenAt = now;
      }
      if (isOver) this.#states.delete(key);
    }
    if (this.#states.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Errors of the database's state, the same for all callers. */
const states = [isUnreachable, isWorkerUnreachable, isAtLimit, isReadOnly];

/** The worker that an error of the coordinator names; the rest of the message varies. */
function workerOf({ message }: Error): string {
  return message.match(/@\S+:\d+/)?.[0] ?? '';
}

function lineOf(args: readonly unknown[]): { fields: object; message: string; error: Error } | undefined {
  const [fields, message] = args;
  if (typeof fields !== 'object' || fields === null || !('err' in fields) || typeof message !== 'string')
    return undefined;
  const error = fields.err;
  if (!(error instanceof Error)) return undefined;
  return states.some((holds) => holds(error)) ? { fields, message, error } : undefined;
}

const secretFields: ReadonlySet<string> = new Set([
  'authorization',
  'secret',
  'clientsecret',
  'client_secret',
  'password',
  'token',
  'accesstoken',
  'access_token',
  'apikey',
  'x-api-key',
]);

/**
 * Writes JSON lines to stderr (contract: settings). No code logs a header, a body or a query; the redaction is a second
 * line of defence. `worker`: the number of the process, in each line.
 */
export function createLogger(level: string, stream: DestinationStream = logStream(), worker?: number): Logger {
  const repeated = new RepeatedLines();
  return pino(
    {
      level,
      hooks: {
        logMethod(args, method, number) {
          repeated.log(this, args, method, number === warning);
        },
      },
      base: worker === undefined ? null : { worker },
      timestamp: () => `,"time":"${timeText(Date.now())}"`,
      mixin: traceFields,
      mixinMergeStrategy: (fields, added) => (added === noFields ? fields : { ...added, ...fields }),
      formatters: { level: (label) => ({ level: label }), log: (fields) => redact(fields, 2) },
      serializers: { err: describeError, req: () => undefined, res: () => undefined },
    },
    stream,
  );
}

/** The number of pino's level `warn`. */
const warning = 40;

/** Loggers whose lines already have a trace's id. */
const bound = new WeakSet<object>();

/** Marks a logger whose lines have `trace_id`, so that no line has it twice. */
export function bindTrace<Bound extends object>(logger: Bound): Bound {
  bound.add(logger);
  return logger;
}

/** Adds the id of the current trace to each line. */
function traceFields(_fields: object, _level: number, logger: object): object {
  const trace = currentTrace();
  return trace === undefined || bound.has(logger) ? noFields : { trace_id: trace.traceId };
}

const noFields = {};

let lastSecond = Number.NaN;
let textOfSecond = '';

/** Date.toISOString, cached per second. */
function timeText(now: number): string {
  const second = Math.floor(now / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    textOfSecond = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
  }
  return `${textOfSecond}${String(1000 + now - second * 1000).slice(1)}Z`;
}

/**
 * Redacts fields by name, down to `levels`; Pino's own redaction parses each path again for each line. Fields without a
 * secret, the usual case, are returned without a copy.
 */
function redact(fields: Record<string, unknown>, levels: number): Record<string, unknown> {
  if (!hasSecret(fields, levels)) return fields;
  const redacted: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (secretFields.has(name.toLowerCase())) redacted[name] = mask;
    else if (levels > 1 && isPlainObject(value)) redacted[name] = redact(value, levels - 1);
    else redacted[name] = value;
  }
  return redacted;
}

function hasSecret(fields: Record<string, unknown>, levels: number): boolean {
  for (const name in fields) {
    if (secretFields.has(name.toLowerCase())) return true;
    const value = fields[name];
    if (levels > 1 && isPlainObject(value) && hasSecret(value, levels - 1)) return true;
  }
  return false;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * Only these fields of an error: `detail` and `where` of the database have values of rows, and an HTTP client's error
 * may have the whole request.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: 'something other than an error was thrown' };
  // Its message is the provider's, which may have a part of what it was asked.
  if (error instanceof AnnalsError && error.passed !== undefined) return describeError(error.cause);
  const code = 'code' in error ? error.code : undefined;
  return {
    name: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
