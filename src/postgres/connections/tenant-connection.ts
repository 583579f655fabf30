import pg from 'pg';
import type { Step } from '../../core/fairness/work.ts';
import { mayBeMoved, TenantMoved } from '../tenant-moved.ts';
import type { Canceller } from './canceller.ts';
import { marked, newMark } from './pooler.ts';
import { closeAfter, isUnreachable } from './unreachable.ts';

/** Sends a statement when it may run; `text` identifies it. */
export type InTurn = <Result>(text: string, send: () => Promise<Result>) => Promise<Result>;

const atOnce: InTurn = (_text, send) => send();

interface TenantConnectionOptions {
  readonly canceller: Canceller;
  /** Behind a pooler, which chooses the server process, statements are found by a mark. */
  readonly pooled: boolean;
  /** Milliseconds in which the server must end a cancelled statement or roll a transaction back. */
  readonly maxSilence: number;
  /** Returns the connection to the pool, or closes it; default: the driver does. */
  readonly release?: (client: pg.PoolClient, destroy: boolean | Error) => void;
  /** Whether the cluster has just moved tenants. */
  readonly hasMovedTenants: () => Promise<boolean>;
}

/** The terms of a caller's use of a connection. */
interface Lease {
  readonly step?: Step | undefined;
  /** Called when the caller has released the connection. */
  readonly onRelease?: () => void;
  /** Sends the statements; default: at once. */
  readonly inTurn?: InTurn;
}

/** A connection of one caller until it is released. If its step is aborted, its statement is cancelled. */
export class TenantConnection {
  readonly #client: pg.PoolClient;
  readonly #canceller: Canceller;
  readonly #pooled: boolean;
  readonly #maxSilence: number;
  readonly #hasMovedTenants: () => Promise<boolean>;
  readonly #release: typeof toPool;
  #step: Step | undefined;
  /** A statement ended without the server's answer, so the state of the connection is unknown. */
  #broken = false;
  #onRelease = nothing;
  #inTurn = atOnce;
  /** The mark of the running statement, behind a pooler. */
  #mark: string | undefined;

  constructor(
    client: pg.PoolClient,
    { canceller, pooled, maxSilence, release, hasMovedTenants }: TenantConnectionOptions,
  ) {
    this.#client = client;
    this.#canceller = canceller;
    this.#pooled = pooled;
    this.#maxSilence = maxSilence;
    this.#hasMovedTenants = hasMovedTenants;
    this.#release = release ?? toPool;
  }

  /** Only for the pool: begins the use by another caller. */
  begin({ step, onRelease = nothing, inTurn = atOnce }: Lease): this {
    this.#step = step;
    this.#inTurn = inTurn;
    this.#onRelease = onRelease;
    return this;
  }

  /** Names the running statement to a canceller; undefined if it has no name. */
  get running(): number | string | undefined {
    return this.#pooled ? this.#mark : backendOf(this.#client);
  }

  /** Submittables, such as COPY, are not cancelled. */
  query<Driven extends pg.Submittable>(driven: Driven): Driven;
  query<Row extends pg.QueryResultRow>(
    statement: string | pg.QueryConfig,
    values?: readonly unknown[],
  ): Promise<pg.QueryResult<Row>>;
  query(
    statement: string | pg.QueryConfig | pg.Submittable,
    values?: readonly unknown[],
  ): Promise<pg.QueryResult> | pg.Submittable {
    if (typeof statement === 'object' && 'submit' in statement) {
      this.#mark = undefined;
      return this.#client.query(statement);
    }
    if (this.#step === undefined) return this.#send(statement, values);
    if (isRollback(statement)) return this.#rollBack(statement);
    const [step, text] = [this.#step, typeof statement === 'string' ? statement : statement.text];
    return this.#inTurn(text, () => this.#queryInStep(step, statement, values));
  }

  /** Returns the connection to the pool, or closes it. */
  release(destroy: boolean | Error = false): void {
    const [step, onRelease] = [this.#step, this.#onRelease];
    this.#step = undefined;
    this.#onRelease = nothing;
    try {
      this.#release(this.#client, destroy || this.#broken);
    } finally {
      step?.end();
      onRelease();
    }
  }

  async #queryInStep(
    { signal }: Step,
    statement: string | pg.QueryConfig,
    values: readonly unknown[] | undefined,
  ): Promise<pg.QueryResult> {
    signal.throwIfAborted();
    let stopCancelling: (() => Promise<void>) | undefined;
    let answered = () => {};
    const sent = this.#send(statement, values);
    const { running } = this;
    const onAbort = () => {
      if (running !== undefined) stopCancelling = this.#canceller.cancel(running);
      answered = closeAfter(this.#client, this.#maxSilence);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await sent;
    } catch (error) {
      if (signal.aborted && (isCancelled(error) || isUnreachable(error))) throw signal.reason;
      throw mayBeMoved(error) && (await this.#hasMovedTenants()) ? new TenantMoved({ cause: error }) : error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      answered();
      // The cancel request must not hit the next statement.
      await stopCancelling?.();
    }
  }

  /** Closing the connection rolls back too. */
  async #rollBack(statement: string | pg.QueryConfig): Promise<pg.QueryResult> {
    const answered = closeAfter(this.#client, this.#maxSilence);
    try {
      return await this.#send(statement, undefined);
    } finally {
      answered();
    }
  }

  async #send(statement: string | pg.QueryConfig, values: readonly unknown[] | undefined): Promise<pg.QueryResult> {
    this.#mark = this.#pooled ? newMark() : undefined;
    const text = this.#mark === undefined ? statement : marked(this.#mark, statement);
    try {
      return await answerOf(this.#client, text, values);
    } catch (error) {
      // The driver creates the error at the socket. The log should show who sent the statement.
      if (error instanceof Error) Error.captureStackTrace(error);
      this.#broken ||= !(error instanceof pg.DatabaseError) || error.severity === 'FATAL';
      throw error;
    }
  }
}

function nothing(): void {}

function toPool(client: pg.PoolClient, destroy: boolean | Error): void {
  client.release(destroy);
}

/**
 * The driver's answer, by callback: the driver's own promise assigns a function literal to a property, which would keep
 * each statement, its rows and its request until the next full garbage collection (docs/decisions/requests.md).
 */
function answerOf(
  client: pg.PoolClient,
  statement: string | pg.QueryConfig,
  values: readonly unknown[] | undefined,
): Promise<pg.QueryResult> {
  const { promise, resolve, reject } = Promise.withResolvers<pg.QueryResult>();
  const settle = (error: Error | null, result: pg.QueryResult) => {
    if (error) reject(error);
    else resolve(result);
  };
  if (typeof statement === 'string') client.query(statement, [...(values ?? [])], settle);
  else client.query(values === undefined ? statement : { ...statement, values: [...values] }, settle);
  return promise;
}

/** The transaction of an aborted step must end too. */
function isRollback(statement: string | pg.QueryConfig): boolean {
  return statement === 'rollback';
}

/** SQLSTATE 57014, from pg_cancel_backend or from a statement_timeout. */
function isCancelled(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014';
}

/** The driver has this property, but its types lack it. */
function backendOf(client: pg.PoolClient): number {
  const backend = 'processID' in client ? client.processID : undefined;
  if (typeof backend !== 'number') throw new Error('the driver does not expose the server process of a connection');
  return backend;
}
