import type pg from 'pg';

export interface Statement {
  /** Of a prepared statement. */
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: unknown[];
}

/** Keeps every statement that goes through the pools from now on. */
export function recordStatements(...pools: readonly pg.Pool[]): Statement[] {
  const statements: Statement[] = [];
  const watched = new WeakSet<pg.PoolClient>();
  const watch = (client: pg.PoolClient) => {
    if (watched.has(client)) return;
    watched.add(client);
    const query = client.query;
    client.query = function watchedQuery(this: pg.PoolClient, ...parameters: Parameters<typeof query>) {
      const [first, second]: unknown[] = parameters;
      const config =
        typeof first === 'object' ? (first as { name?: string; text: string; values?: unknown[] }) : undefined;
      const values = config?.values ?? (Array.isArray(second) ? second : []);
      statements.push({ name: config?.name, text: config?.text ?? String(first), values });
      return Reflect.apply(query, this, parameters);
    } as typeof query;
  };
  for (const pool of pools) pool.on('acquire', watch);
  return statements;
}
