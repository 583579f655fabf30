import pg from 'pg';
import { rest } from '../../core/repeat.ts';

/** Cancels statements of other connections, over one separate connection. */
export interface Canceller {
  /**
   * Cancels the statements of a server process, named by its id or by the mark of its statement (see pooler.ts), until
   * the returned function is called. That resolves when no cancel request is open, so that the connection can be
   * reused.
   */
  cancel(backend: number | string): () => Promise<void>;
  /**
   * Whether the server is executing the statement of a server process or of a mark. False if the server does not answer
   * twice within 5 s. True if it refuses to say, and for a statement without a name (`undefined`).
   */
  isAtWork(backend: number | string | undefined): Promise<boolean>;
  /** Closes its connection. */
  close(): Promise<void>;
}

// Milliseconds. A cancel request can arrive between two statements, so it is repeated.
const cancelEvery = 150;
const keepConnection = 10_000;
const maxAnswer = 5_000;

const cancelMarked = `
  select pg_cancel_backend(pid) from pg_stat_activity
    where state = 'active' and pid <> pg_backend_pid() and split_part(query, ' */', 1) || ' */' = any ($1::text[])`;

// The state is `disabled` if the server does not track activities.
const atWork = `
  select coalesce($1::text, $2::text) is null or exists (
    select from pg_stat_activity
      where state not like 'idle%' and (pid = $1::int or split_part(query, ' */', 1) || ' */' = $2::text)
  ) as "isAtWork"`;

export function createCanceller(config: pg.ClientConfig): Canceller {
  const backends = new Set<number | string>();
  let running: Promise<void> | undefined;
  /** The current round of cancel requests; it resolves when all of them are done. */
  let round: Promise<unknown> = Promise.resolve();
  let client: pg.Client | undefined;
  let idle: NodeJS.Timeout | undefined;
  const closed = new AbortController();

  async function connect(): Promise<pg.Client> {
    if (client !== undefined) return client;
    const fresh = new pg.Client({ ...config, query_timeout: maxAnswer });
    const forget = () => {
      if (client === fresh) client = undefined;
    };
    fresh.on('error', forget);
    fresh.on('end', forget);
    await fresh.connect();
    client = fresh;
    return fresh;
  }

  async function disconnect(): Promise<void> {
    const last = client;
    client = undefined;
    await last?.end().catch(() => {});
  }

  /** One request for all backends. If the database is away or has no free connection, the next round retries. */
  async function cancelAll(): Promise<void> {
    try {
      const connected = await connect();
      const ids = [...backends].filter((backend) => typeof backend === 'number');
      const marks = [...backends].filter((backend) => typeof backend === 'string');
      if (ids.length > 0) {
        await connected.query('select pg_cancel_backend(backend) from unnest($1::int[]) as backend', [ids]);
      }
      if (marks.length > 0) await connected.query(cancelMarked, [marks]);
    } catch {
      await disconnect();
    }
  }

  async function run(): Promise<void> {
    clearTimeout(idle);
    while (backends.size > 0 && !closed.signal.aborted) {
      round = cancelAll();
      await round;
      if (backends.size > 0) await rest(cancelEvery, closed.signal);
    }
    running = undefined;
    idle = setTimeout(() => void disconnect(), keepConnection).unref();
  }

  return {
    cancel(backend) {
      backends.add(backend);
      running ??= run();
      return async () => {
        backends.delete(backend);
        await round;
      };
    },

    async isAtWork(backend) {
      const values = typeof backend === 'number' ? [backend, null] : [null, backend ?? null];
      const ask = async () => (await (await connect()).query<{ isAtWork: boolean }>(atWork, values)).rows[0]?.isAtWork;
      // A kept connection may be lost while the server is not.
      const reconnectAndAsk = async () => {
        await disconnect();
        return await ask();
      };
      try {
        return (await ask().catch(reconnectAndAsk)) === true;
      } catch (error) {
        await disconnect();
        return error instanceof pg.DatabaseError;
      }
    },

    async close() {
      closed.abort();
      clearTimeout(idle);
      await running;
      clearTimeout(idle);
      await disconnect();
    },
  };
}
