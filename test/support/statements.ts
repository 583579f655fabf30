import type pg from 'pg';

/** Keeps the text of every statement that goes through the pool from now on. */
export function recordStatements(pool: pg.Pool): string[] {
  const statements: string[] = [];
  const watched = new WeakSet<pg.PoolClient>();
  pool.on('acquire', (client) => {
    if (watched.has(client)) return;
    watched.add(client);
    const query = client.query;
    client.query = function watchedQuery(this: pg.PoolClient, ...parameters: Parameters<typeof query>) {
      const [first]: unknown[] = parameters;
      statements.push(typeof first === 'string' ? first : String((first as { text?: string }).text));
      return Reflect.apply(query, this, parameters);
    } as typeof query;
  });
  return statements;
}
