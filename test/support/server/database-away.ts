import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/**
 * Makes a test database unreachable: ends its connections and refuses new ones until the function that it returns is
 * called.
 */
export async function takeDatabaseAway(url: string): Promise<() => Promise<void>> {
  const name = new URL(url).pathname.slice(1);
  const administration = new URL(url);
  administration.pathname = '/postgres';
  const administrator = new pg.Client(administration.href);
  await administrator.connect();
  await administrator.query(`alter database ${name} with allow_connections false`);
  // Again, because a connection that was being made when they were forbidden is there only a moment later.
  for (let turn = 0; turn < 5; turn++) {
    // PostgreSQL's own workers, which vacuum, are of a superuser and end by themselves.
    await administrator.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and backend_type = 'client backend'",
      [name],
    );
    await sleep(50);
  }
  return async () => {
    await administrator.query(`alter database ${name} with allow_connections true`);
    await administrator.end();
  };
}
