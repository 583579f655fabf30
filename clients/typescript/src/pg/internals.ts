/** Parts of `pg` that attribution uses: the same in 8.11 and the current version, unless a comment says otherwise. */

export interface Message {
  readonly name?: string;
  /** Of a CommandComplete: its tag. */
  readonly text?: string;
  /** Of a ReadyForQuery. */
  readonly status?: string;
  /** Of an error: its SQLSTATE. */
  readonly code?: string;
}

export interface Connection {
  parsedStatements: Record<string, string>;
  /** Since 8.16. */
  submittedNamedStatements?: Record<string, string>;
  stream: { cork?(): void; uncork?(): void };
  emit(event: string | symbol, ...values: unknown[]): boolean;
  parse(message: object): void;
  bind(message: object): void;
  describe(message: object): void;
  execute(message: object): void;
  sync(): void;
  query(text: string): void;
}

export type Callback = (...values: unknown[]) => unknown;

/** pg's own query, or one that the application submits: a cursor, a stream, a COPY. */
export interface Query {
  readonly text?: unknown;
  readonly name?: string;
  readonly rows?: number;
  callback?: Callback | undefined;
  submit(connection: Connection): Error | null | undefined;
  handleError(error: unknown, connection: Connection): void;
  requiresPreparation?(): boolean;
  prepare?(connection: Connection): void;
}

export interface Client {
  readonly connection: Connection;
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  readonly user?: string;
  /** The array of the queries that wait; `queryQueue` before 8.17. */
  readonly _queryQueue?: Query[];
  readonly queryQueue?: Query[];
  /** Since 8.22. */
  readonly pipeline?: boolean;
  readonly _sentQueryQueue?: Query[];
  readonly _activeQuery?: Query | null;
  readonly _txStatus?: string | null;
  readyForQuery?: boolean;
  readonly hasExecuted?: boolean;
  _pulseQueryQueue(): void;
  query(...values: unknown[]): unknown;
  connect(...values: unknown[]): unknown;
}

export interface Pool {
  readonly Client: new (...values: never[]) => Client;
  readonly _clients: readonly Client[];
  connect(...values: unknown[]): unknown;
  on(event: 'connect', listener: (client: Client) => void): unknown;
}

/** Whether it is pg's own query, whose messages are known. One with `rows` keeps a portal open. */
export function isPlainQuery(query: Query): boolean {
  return typeof query.requiresPreparation === 'function' && typeof query.prepare === 'function' && !query.rows;
}
