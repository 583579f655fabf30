import { type Store, shared } from '../context/shared.ts';
import type { Connection, Query } from './internals.ts';

const textOid = 25;

/** The statement that sets `annals.who`, its text as parameter. It works on a standby too. */
export function settingSql(isCaptured: boolean): string {
  const setting = `select pg_catalog.set_config('annals.who', $1, true)`;
  if (!isCaptured) return setting;
  return `${setting}, case when not pg_catalog.pg_is_in_recovery() then pg_catalog.pg_logical_emit_message(true, 'annals.who', $1) end`;
}

/** Sends the setting, without a Sync. Nothing is parsed under a name. */
export function sendSetting(connection: Connection, sql: string, text: string): void {
  connection.parse({ text: sql, name: '', types: [textOid] });
  connection.bind({ portal: '', statement: '', values: [text] });
  connection.execute({ portal: '' });
}

/** What `write` sends goes out together. */
export function corked<T>({ stream }: Connection, write: () => T): T {
  stream.cork?.();
  try {
    return write();
  } finally {
    stream.uncork?.();
  }
}

/** The same connection, which calls `begin` before its first message and sends no Query message. `end` sends its Sync. */
export function precededBy(connection: Connection, begin: () => void, end: () => void): Connection {
  const sent: Partial<Connection> = {
    parse(message) {
      begin();
      connection.parse(message);
    },
    bind(message) {
      begin();
      connection.bind(message);
    },
    query(text) {
      begin();
      connection.parse({ text, name: '' });
      connection.bind({ portal: '', statement: '', values: [] });
      connection.describe({ type: 'P', name: '' });
      connection.execute({ portal: '' });
      end();
    },
    sync: end,
  };
  return Object.assign(Object.create(connection), sent);
}

/** The events of a query run in this context. */
export function carryEvents(query: Query, store: Store | undefined): void {
  const emit: unknown = Reflect.get(query, 'emit');
  if (typeof emit !== 'function') return;
  const value = (...values: unknown[]) => shared.storage.run(store, () => Reflect.apply(emit, query, values));
  Object.defineProperty(query, 'emit', { configurable: true, writable: true, value });
}
