import { type DestinationStream, type Logger, pino } from 'pino';
import { mask } from '../core/mask.ts';
import { currentTrace } from '../core/trace.ts';
import { logStream } from './log-stream.ts';
import { RepeatedLines } from './repeated-lines.ts';

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
