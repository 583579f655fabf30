// One subject that would not be plainer in two files: what is in flight on a connection, and what is set there.

import { type Store, shared } from '../context/shared.ts';
import { resolution, textOf } from '../context/store.ts';
import { warnOnce } from '../context/warning.ts';
import { type Exchange, JointExchange, SettingExchange } from './exchange.ts';
import { filterMessages } from './filter.ts';
import { type Client, type Connection, isPlainQuery, type Message, type Query } from './internals.ts';
import { readStatement, type Statement } from './statements.ts';
import { ServerSupport } from './support.ts';
import { carryEvents, corked, precededBy, sendSetting, settingSql } from './wire.ts';

/** A call of the application's `query()`. */
export interface Call {
  readonly store: Store | undefined;
  /** What was set by setContext when it was called. */
  readonly set: Store['set'];
  readonly isSubmittable: boolean;
  readonly hasCallback: boolean;
}

type Fault = Error | null | undefined;

/** The setting may be that of an outer savepoint: it equals no text. */
const anyText = Symbol('any');
const noContext = '{}';

/** Tags after which a transaction has another setting than the one that was sent. */
const endsSetting: ReadonlyMap<string | undefined, undefined | typeof anyText> = new Map([
  ...['COMMIT', 'PREPARE TRANSACTION'].map((tag) => [tag, undefined] as const),
  // BEGIN changes nothing in a transaction, and ROLLBACK may be that to a savepoint.
  ...['BEGIN', 'START TRANSACTION', 'ROLLBACK', 'RESET'].map((tag) => [tag, anyText] as const),
]);

/**
 * Attributes the statements of one connection. It puts `annals.who` in front of a statement when pg sends it, and drops
 * the answers to that before pg sees them, so that pg's queue, queries and events are as without it.
 */
export class Line {
  readonly #client: Client;
  readonly #connection: Connection;
  readonly #support: ServerSupport;
  readonly #sql: string;
  /** Of the last ReadyForQuery. Undefined until one is seen. */
  #status: string | undefined;
  /** In pipeline mode: the status after what is in flight. */
  #expected: string | undefined;
  /** `annals.who` of the transaction: undefined if we have not set it. */
  #sent: string | typeof anyText | undefined;
  /** What was sent and not answered: exchanges of ours; in pipeline mode also queries of the application, as null. */
  readonly #inFlight: (Exchange | null)[] = [];
  /** The error that a setting met in a transaction, which the server then reports as 25P02. */
  #failure: Message | undefined;
  /** In whose context the events of a query run that the application submitted. */
  #eventStore: { readonly store: Store | undefined } | undefined;
  #hasEnded = false;
  /** The call of `query()` that is running. */
  #call: Call | undefined;
  /** Whether every statement of the transaction may write: `attribute.transaction`. */
  coversAll = false;
  /** Whether the status is that of the server, and not assumed. */
  knowsStatus: boolean;

  constructor(client: Client, isCaptured: boolean) {
    this.#client = client;
    this.#connection = client.connection;
    this.#support = new ServerSupport(client, isCaptured);
    this.#sql = settingSql(isCaptured);
    this.knowsStatus = typeof client._txStatus === 'string' || client.hasExecuted !== true;
    // Older versions of pg do not keep it. Most are idle outside of a transaction.
    this.#status = client._txStatus ?? (this.knowsStatus || client.readyForQuery === true ? 'I' : undefined);
    if (client.pipeline === true)
      for (const _query of [...(client._sentQueryQueue ?? []), ...(client._activeQuery ? [0] : [])])
        this.#inFlight.push(null);
    filterMessages(this.#connection, {
      isIdle: () => this.#inFlight.length === 0 && this.#eventStore === undefined,
      takes: (event, message) => this.#takes(event, message),
      ended: () => this.#end(),
      pass: (event, go, values) => this.#pass(event, go, values),
    });
    this.#watchQueue();
  }

  get isInTransaction(): boolean {
    return this.#status !== undefined && this.#status !== 'I';
  }

  /** Runs pg's own `query()`, which puts the application's query into its queue, or refuses it. */
  during<T>(call: Call, query: () => T): T {
    this.#call = call;
    try {
      return query();
    } finally {
      this.#call = undefined;
    }
  }

  #watchQueue(): void {
    const queue = this.#client._queryQueue ?? this.#client.queryQueue;
    if (queue === undefined) return;
    Object.defineProperty(queue, 'push', {
      configurable: true,
      writable: true,
      value: (...added: Query[]) => {
        const call = this.#call;
        this.#call = undefined;
        for (const query of call === undefined ? [] : added) this.#tryAdopting(query, call as Call);
        return Array.prototype.push.apply(queue, added);
      },
    });
  }

  /** Whatever an application submits, its query is to run. */
  #tryAdopting(query: Query, call: Call): void {
    try {
      this.#adopt(query, call);
    } catch {
      warnOnce('UNKNOWN_QUERY', 'a query of an unknown kind is not attributed');
    }
  }

  /** Prepares a query that pg is about to put into its queue. */
  #adopt(query: Query, call: Call): void {
    const { callback } = query;
    if (call.hasCallback && callback !== undefined)
      query.callback = (...values: unknown[]) => shared.storage.run(call.store, callback, ...values);
    if (call.isSubmittable && this.#client.pipeline === true) carryEvents(query, call.store);
    const statement = typeof query.text === 'string' ? readStatement(query.text) : undefined;
    if (!this.#concerns(statement, query, call)) return;
    const submit = query.submit;
    const isOwn = Object.hasOwn(query, 'submit');
    Object.defineProperty(query, 'submit', {
      configurable: true,
      writable: true,
      enumerable: isOwn,
      value: (connection: Connection) => {
        if (isOwn) query.submit = submit;
        else Reflect.deleteProperty(query, 'submit');
        // In pipeline mode the answers are those of queries that were sent before.
        if (call.isSubmittable && this.#client.pipeline !== true) this.#eventStore = { store: call.store };
        return this.#submit(query, call, statement ?? this.#statementOf(query), (to = connection) =>
          submit.call(query, to),
        );
      },
    });
  }

  #concerns(statement: Statement | undefined, query: Query, call: Call): boolean {
    if (call.isSubmittable || this.#client.pipeline === true || this.coversAll) return true;
    if (statement === undefined) return query.name !== undefined;
    return statement.kind === 'write' || this.#wouldProbe(statement);
  }

  /** A query may name a statement that the connection has prepared, without its text. */
  #statementOf({ text, name }: Query): Statement | undefined {
    const known = typeof text === 'string' ? text : name && this.#connection.parsedStatements[name];
    return known ? readStatement(known) : undefined;
  }

  #submit(query: Query, call: Call, statement: Statement | undefined, send: (to?: Connection) => Fault): Fault {
    if (this.#client.pipeline === true) return this.#submitToPipeline(call, statement, send);
    if (statement === undefined) return send();
    if (this.#status === 'T' && this.#mayWrite(statement))
      return this.#resolved(query, call, () =>
        corked(this.#connection, () => {
          this.#precede(call);
          return send();
        }),
      );
    if (this.#status !== 'I') return send();
    if (this.#wouldProbe(statement)) this.#probe();
    if (!statement.isRowStatement || !statement.isSingle || !isPlainQuery(query) || this.#support.state === 'no')
      return send();
    return this.#resolved(query, call, () => {
      const text = call.store && textOf(call.store, call.set);
      return text === undefined ? send() : this.#sendJoint(query, text, send);
    });
  }

  /** What is in flight decides the status: a setting outside of a transaction has no effect. */
  #submitToPipeline(call: Call, statement: Statement | undefined, send: () => Fault): Fault {
    if (this.#inFlight.length === 0) this.#expected = this.#status;
    if (statement !== undefined && this.#expected === 'I' && this.#wouldProbe(statement)) this.#probe();
    const isOpen = this.#expected !== undefined && this.#expected !== 'I' && this.#expected !== 'E';
    if (isOpen && statement !== undefined && this.#mayWrite(statement)) this.#precede(call);
    const fault = send();
    if (fault) return fault;
    this.#inFlight.push(null);
    if (statement === undefined || !statement.isSingle) {
      this.#expected = 'unknown';
      this.#sent = anyText;
    } else if (statement.kind === 'begin') {
      if (this.#expected === 'I') this.#sent = undefined;
      else this.#sent &&= anyText;
      this.#expected = 'T';
    } else if (statement.kind === 'end') {
      this.#expected = 'unknown';
      this.#sent &&= anyText;
    }
    return fault;
  }

  #mayWrite({ kind }: Statement): boolean {
    return kind === 'write' || (this.coversAll && kind === 'other');
  }

  /** What may open a transaction, in which a refusal would be too late. */
  #wouldProbe({ kind, isSingle }: Statement): boolean {
    return this.#support.state === 'unknown' && (kind === 'begin' || !isSingle);
  }

  /** Waits for the application's `resolve`, if it has not returned, and calls `go`. */
  #resolved(query: Query, { store }: Call, go: () => Fault): Fault {
    const waiting = store && resolution(store);
    if (waiting === undefined) return go();
    void waiting.then(() => {
      if (!this.#hasEnded) this.#afterwards(query, go());
    });
    return null;
  }

  /** What pg does with the result of `submit`. */
  #afterwards(query: Query, fault: Fault): void {
    if (!fault) return;
    process.nextTick(() => {
      query.handleError(fault, this.#connection);
      this.#client.readyForQuery = true;
      this.#client._pulseQueryQueue();
    });
  }

  #precede({ store, set }: Call): void {
    const text = (store && textOf(store, set)) ?? (this.#sent === undefined ? undefined : noContext);
    if (text === undefined || text === this.#sent || this.#support.state !== 'yes') return;
    this.#sent = text;
    this.#exchange(text, (error) => {
      if (error === undefined) return;
      this.#sent = anyText;
      this.#failure = error;
      this.#support.refused(error.code);
    });
  }

  #probe(): void {
    this.#exchange(noContext, (error) => {
      if (error === undefined) this.#support.accepted();
      else this.#support.refused(error.code);
    });
  }

  #exchange(text: string, ended: (error: Message | undefined) => void): void {
    sendSetting(this.#connection, this.#sql, text);
    this.#connection.sync();
    this.#inFlight.push(new SettingExchange(ended));
  }

  #sendJoint(query: Query, text: string, send: (to?: Connection) => Fault): Fault {
    const connection = this.#connection;
    const isSimple = query.requiresPreparation?.() === false;
    let exchange: JointExchange | undefined;
    let hasEnded = false;
    const begin = () => {
      if (exchange !== undefined) return;
      sendSetting(this.#connection, this.#sql, text);
      // Forgotten with the transaction, unless the application has opened one unseen.
      this.#sent = text;
      exchange = new JointExchange({
        connection,
        isSimple,
        accepted: () => this.#support.accepted(),
        refused: ({ code }) => this.#support.refused(code),
        repeat: () => {
          // pg noted that it has sent the statement of this name, but the server skipped it.
          if (query.name !== undefined) delete connection.submittedNamedStatements?.[query.name];
          this.#afterwards(query, send());
        },
      });
      this.#inFlight.push(exchange);
    };
    const end = () => {
      hasEnded = true;
      connection.sync();
    };
    return corked(this.#connection, () => {
      const fault = send(precededBy(connection, begin, end));
      // Older versions of pg send nothing more if a value cannot be converted, and wait for ever.
      if (exchange !== undefined && !hasEnded) {
        exchange.abandon();
        end();
      }
      return fault;
    });
  }

  /** Whether a message is an answer to what we sent. */
  #takes(event: string, message: Message): boolean {
    const [head] = this.#inFlight;
    if (event === 'readyForQuery') {
      this.#status = message.status;
      this.knowsStatus = true;
      if (head === null) this.#inFlight.shift();
    }
    const isTaken = head?.take(event, message) ?? false;
    if (head?.isOver === true) this.#inFlight.shift();
    if (!isTaken) this.#observe(event, message);
    return isTaken;
  }

  #observe(event: string, { status, text }: Message): void {
    if (event === 'readyForQuery') {
      this.#failure = undefined;
      if (status === 'I' && this.#inFlight.length === 0) this.#sent = undefined;
      if (status === 'I') this.coversAll = false;
    } else if (event === 'commandComplete' && this.#client.pipeline !== true && endsSetting.has(text)) {
      const setting = endsSetting.get(text);
      this.#sent = this.#sent === undefined ? undefined : setting;
    }
  }

  #pass(event: string | symbol, go: (...values: unknown[]) => boolean, values: unknown[]): boolean {
    const at = this.#eventStore;
    if (event === 'readyForQuery') this.#eventStore = undefined;
    const isAfterFailure = event === 'errorMessage' && (values as Message[])[0]?.code === '25P02';
    const passed = isAfterFailure && this.#failure !== undefined ? [this.#failure] : values;
    return at === undefined ? go(...passed) : shared.storage.run(at.store, go, ...passed);
  }

  /** The server may end the connection with the error of a setting: it is that of the application's query. */
  #end(): void {
    const held = this.#inFlight.find((exchange) => exchange?.error !== undefined)?.error ?? this.#failure;
    this.#hasEnded = true;
    this.#inFlight.length = 0;
    this.#failure = undefined;
    if (held !== undefined) this.#connection.emit('errorMessage', held);
  }
}
