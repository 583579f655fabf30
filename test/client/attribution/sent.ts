import type pg from 'pg';

interface Line {
  parse(message: { text: string }): void;
  bind(message: { values?: unknown[] }): void;
  query(text: string): void;
  sync(): void;
}

/** What a client sends from now on: statements, `who …` for a setting of annals.who, `sync`. */
export function sentBy(client: pg.ClientBase): string[] {
  const { connection } = client as unknown as { connection: Line };
  const sent: string[] = [];
  const { parse, bind, query, sync } = connection;
  let isSetting = false;
  connection.parse = (message) => {
    isSetting = message.text.includes("set_config('annals.who', $1");
    if (!isSetting) sent.push(`parse ${message.text}`);
    parse.call(connection, message);
  };
  connection.bind = (message) => {
    if (isSetting) sent.push(`who ${message.values?.[0]}`);
    isSetting = false;
    bind.call(connection, message);
  };
  connection.query = (text) => {
    sent.push(`query ${text}`);
    query.call(connection, text);
  };
  connection.sync = () => {
    sent.push('sync');
    sync.call(connection);
  };
  return sent;
}
