import { Socket } from 'node:net';
import pg from 'pg';
import { currentTrace, type Tracer } from '../../core/trace.ts';
import { isBehindPooler, withoutNames, withSettings } from './pooler.ts';

/** Characters of a statement in its span. Statements contain no values, which are parameters. */
const maxText = 1_000;

/** Makes a span of each statement of a traced work. */
function traceStatements(client: pg.ClientBase, tracer: Tracer): void {
  const query: (...args: unknown[]) => unknown = client.query.bind(client);
  Object.assign(client, {
    query(...args: unknown[]) {
      const parent = currentTrace();
      const text = textOf(args[0]);
      // The end of a submittable, such as COPY, is not visible here.
      if (parent === undefined || text === undefined) return query(...args);
      const operation = /^\s*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? 'SQL';
      const span = tracer.begin(operation, {
        kind: 'client',
        parent,
        attributes: {
          'db.system.name': 'postgresql',
          'db.operation.name': operation,
          'db.query.text': text.slice(0, maxText),
        },
      });
      const callback = args.at(-1);
      if (typeof callback === 'function') {
        const callBack = (...results: unknown[]) => {
          span.end({ hasFailed: results[0] instanceof Error });
          callback(...results);
        };
        args[args.length - 1] = callBack;
        return query(...args);
      }
      const result = query(...args);
      if (!(result instanceof Promise)) {
        span.end();
        return result;
      }
      return result.then(
        (rows: unknown) => {
          span.end();
          return rows;
        },
        (error: unknown) => {
          span.end({ hasFailed: true });
          throw error;
        },
      );
    },
  });
}

function textOf(statement: unknown): string | undefined {
  if (typeof statement === 'string') return statement;
  if (typeof statement !== 'object' || statement === null || 'submit' in statement || !('text' in statement)) return;
  return typeof statement.text === 'string' ? statement.text : undefined;
}

export interface PoolOptions {
  /** The name of the connections in pg_stat_activity. */
  applicationName?: string;
  /** Maximum connections of this process; default 10. */
  maximum?: number;
  /** Connections that stay open while idle; default 0. */
  kept?: number;
  /** Maximum milliseconds of a statement and of an idle transaction, enforced by the server; default: no limit. */
  statementLimit?: number;
  /**
   * Milliseconds after which a connection that owes an answer and has sent nothing counts as lost and is closed.
   * Default: 5,000 more than `statementLimit`, so that a live server ends the statement first; without that, no limit.
   */
  silenceLimit?: number | undefined;
  /**
   * Whether the server is still executing the statement of a connection that was silent for `silenceLimit`, which is
   * then extended. Default: no.
   */
  isAtWork?: ((client: pg.PoolClient) => Promise<boolean>) | undefined;
  /** Maximum milliseconds that a caller waits for a connection; default 5,000. */
  connectionLimit?: number;
  /** Makes a span of each statement of a traced work; default: none. */
  tracer?: Tracer | undefined;
  /** Called when an idle connection is lost. The pool opens new ones. */
  onLostConnection?: (error: Error) => void;
}

/** Milliseconds. */
export const silenceAfterLimit = 5_000;

/** Compiling one of Annals' statements takes up to 400 times longer than running it. */
const withoutCompiling = { jit: 'off' };

/** A connection pool. The first query opens the first connection. The wait for a connection is limited. */
export function createPool(url: string, options: PoolOptions = {}): pg.Pool {
  const pooled = isBehindPooler(url);
  const { statementLimit = Number.POSITIVE_INFINITY } = options;
  const { silenceLimit = statementLimit + silenceAfterLimit } = options;
  const pool = new pg.Pool({
    Client: clientsInTurn(),
    // A pooler refuses session settings.
    connectionString: pooled ? url : withSettings(url, withoutCompiling),
    application_name: options.applicationName ?? 'annals',
    max: options.maximum ?? 10,
    min: options.kept ?? 0,
    connectionTimeoutMillis: options.connectionLimit ?? 5_000,
    ...(pooled || statementLimit === Number.POSITIVE_INFINITY
      ? {}
      : { statement_timeout: statementLimit, idle_in_transaction_session_timeout: statementLimit }),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    types: { getTypeParser },
  });
  // Connections are lost in normal operation. Without a listener, this event would end the process.
  pool.on('error', (error) => {
    // A closing connection may get an error from a server that is closing too.
    if (!pool.ending) options.onLostConnection?.(error);
  });
  pool.on('connect', (client) => {
    if (silenceLimit !== Number.POSITIVE_INFINITY) endSilence(client, silenceLimit, options.isAtWork);
    if (pooled) withoutNames(client);
    if (options.tracer !== undefined) traceStatements(client, options.tracer);
  });
  return pool;
}

/**
 * Closes the connection when the server owes an answer and was silent for so long; its callers get an error. The
 * operating system would take a quarter of an hour to give up a connection whose peer vanished.
 */
function endSilence(
  client: pg.PoolClient,
  milliseconds: number,
  isAtWork: (client: pg.PoolClient) => Promise<boolean> = async () => false,
): void {
  const stream = socketOf(client);
  stream.setTimeout(milliseconds);
  stream.on('timeout', async () => {
    const owesAnswer = 'readyForQuery' in client && client.readyForQuery === false;
    if (!owesAnswer) return;
    const { bytesRead } = stream;
    if ((await isAtWork(client)) || stream.bytesRead > bytesRead) stream.setTimeout(milliseconds);
    else stream.destroy(new Error('Connection terminated: the server is silent'));
  });
}

const parserOf: Record<number, (text: string) => unknown> = {
  [pg.types.builtins.INT8]: parseInt8,
  // The driver parses a date as midnight in the machine's time zone, which may be another UTC day.
  [pg.types.builtins.DATE]: (text) => text,
};

/** int8 becomes a number: counts and ids are far below 2^53. A larger value is an error, never rounded. */
function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`int8 ${text} is beyond the safe integers`);
  return value;
}

function getTypeParser(oid: number, format?: 'text' | 'binary') {
  const own = format === 'binary' ? undefined : parserOf[oid];
  return own ?? pg.types.getTypeParser(oid, format);
}

/** Connections that a pool opens at the same time. */
export const maxOpening = 2;

/**
 * The clients of a pool, which open their connections two at a time, in the order of their calls. A server that has
 * just started opens many connections slowly: a pool that opened all at once would give up all at its limit and start
 * over, and waste the server's work each time.
 */
function clientsInTurn(): typeof pg.Client {
  const waiting = new Set<() => void>();
  let opening = 0;

  function turn(client: pg.Client): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stream = socketOf(client);
    // The pool destroys the socket of a client that it abandons.
    const onClose = () => {
      waiting.delete(begin);
      reject(new Error('the connection was given up before its turn to open'));
    };
    const begin = () => {
      stream.off('close', onClose);
      waiting.delete(begin);
      opening += 1;
      resolve();
    };
    stream.once('close', onClose);
    waiting.add(begin);
    if (opening < maxOpening) begin();
    return promise;
  }

  async function openInTurn(client: pg.Client, open: () => Promise<unknown>): Promise<void> {
    await turn(client);
    try {
      await open();
    } finally {
      opening -= 1;
      const [next] = waiting;
      next?.();
    }
  }

  return class extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config);
      // A connection can be lost between two queries, of which the next reports it. Without a listener, this event
      // would end the process.
      this.on('error', () => {});
    }

    override connect(): Promise<this>;
    override connect(callback: (error: Error | null, client?: this) => void): void;
    override connect(callback?: (error: Error | null, client?: this) => void): Promise<this> | undefined {
      const opened = openInTurn(this, () => super.connect()).then(() => this);
      if (callback === undefined) return opened;
      void opened.then((client) => callback(null, client), callback);
      return undefined;
    }
  };
}

/** The driver has this property, but its types lack it. */
function socketOf(client: pg.ClientBase): Socket {
  const connection: unknown = 'connection' in client ? client.connection : undefined;
  const stream = typeof connection === 'object' && connection !== null && 'stream' in connection && connection.stream;
  if (!(stream instanceof Socket)) throw new Error('the driver does not expose the socket of a connection');
  return stream;
}
