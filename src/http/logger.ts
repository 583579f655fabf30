import { type DestinationStream, destination, type Logger, pino } from 'pino';

const secretFields = [
  'authorization',
  'secret',
  'clientSecret',
  'client_secret',
  'password',
  'token',
  'accessToken',
  'access_token',
  'apiKey',
];

/**
 * JSON lines on stderr (contract: settings). Redaction is the second net: nothing logs a header, a body or a query in
 * the first place.
 */
export function createLogger(level: string, stream: DestinationStream = destination({ fd: 2, sync: false })): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`]), censor: '********' },
      serializers: { err: describeError, req: () => undefined, res: () => undefined },
    },
    stream,
  );
}

/**
 * Only these fields of an error: a database's carries `detail` and `where` with values of rows, an HTTP client's may
 * carry the whole request with its headers.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: 'a value that is no error was thrown' };
  const code = 'code' in error ? error.code : undefined;
  return {
    name: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
