import { type DestinationStream, destination, type LogFn, type Logger, pino } from 'pino';
import { mask } from '../core/sealing.ts';
import { currentTrace } from '../core/trace.ts';
import { isAtLimit, isReadOnly, isUnreachable, isWorkerUnreachable } from '../postgres/connections/unreachable.ts';

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

// Milliseconds. A state ends when its line has not come for so long.
const quiet = 10_000;
const everyMinute = 60_000;
const lookEvery = 5_000;
/** More states at a time are written line by line. */
const maxStates = 100;

interface State {
  /** Writes the line with the number of lines that were left out. */
  write(leftOut: number): void;
  leftOut: number;
  lastAt: number;
  writtenAt: number;
}

/**
 * While the database or a worker of a cluster is away, or takes no writes, everything that needs it fails each second in the same words.
 * Of such warnings the first is written at once; those that follow are counted, and a line tells their number (`repeated`) each minute
 * and at the end.
 * Errors are never left out: the answer 500 of a request has its own line.
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
      known.leftOut += 1;
      known.lastAt = now;
      return;
    }
    method.apply(logger, args);
    if (this.#states.size >= maxStates) return;
    const write = (repeated: number) => method.apply(logger, [{ ...fields, repeated }, message]);
    this.#states.set(key, { write, leftOut: 0, lastAt: now, writtenAt: now });
    this.#timer ??= setInterval(() => this.#look(performance.now()), lookEvery).unref();
  }

  #look(now: number): void {
    for (const [key, state] of this.#states) {
      const isOver = now - state.lastAt >= quiet;
      if (state.leftOut > 0 && (isOver || now - state.writtenAt >= everyMinute)) {
        state.write(state.leftOut);
        state.leftOut = 0;
        state.writtenAt = now;
      }
      if (isOver) this.#states.delete(key);
    }
    if (this.#states.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** How an error tells that the database is not as it should be, for all who ask it. */
const states = [isUnreachable, isWorkerUnreachable, isAtLimit, isReadOnly];

/** The worker that an error of the coordinator names. The words around it differ from one second to the next. */
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
]);

/**
 * Writes JSON lines to stderr (contract: settings). No code logs a header, a body or a query. The redaction is there in
 * case some code does. `worker`: the number of the process, for each of its lines.
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

/** Loggers whose lines have the id of a trace anyway. */
const bound = new WeakSet<object>();

/** Notes that the lines of a logger have `trace_id`, so that no line has it twice. */
export function bindTrace<Bound extends object>(logger: Bound): Bound {
  bound.add(logger);
  return logger;
}

/** Lines of work that belongs to a trace have its id, whichever code logs them. */
function traceFields(_fields: object, _level: number, logger: object): object {
  const trace = currentTrace();
  return trace === undefined || bound.has(logger) ? noFields : { trace_id: trace.traceId };
}

const noFields = {};

let lastSecond = Number.NaN;
let textOfSecond = '';

/** The same text as Date.toISOString. Lines of the same second share most of it. */
function timeText(now: number): string {
  const second = Math.floor(now / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    textOfSecond = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
  }
  return `${textOfSecond}${String(1000 + now - second * 1000).slice(1)}Z`;
}

/**
 * Redacts fields by name, down to `levels`. Pino's own redaction parses each path again for each line. Fields without a
 * secret, as those of each request, are returned as they are: a copy of them would only be garbage.
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
 * Keeps only these fields of an error. An error of the database has values of rows in `detail` and `where`; one of an
 * HTTP client may have the whole request with its headers.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: 'something other than an error was thrown' };
  const code = 'code' in error ? error.code : undefined;
  return {
    name: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
