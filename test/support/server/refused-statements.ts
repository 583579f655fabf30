import type pg from 'pg';

interface Refused {
  readonly table: string;
  readonly on: 'insert' | 'update' | 'delete';
  /** The rows of this tenant alone. */
  readonly tenant?: string;
  readonly message: string;
  /** The name of the condition that the error has: `disk_full`. */
  readonly condition?: string;
}

/**
 * Makes the statements of a table fail until the caller calls the returned function: a trigger stands for whatever may go
 * wrong. In a cluster each shard has the trigger.
 */
export async function refuseStatements(pool: pg.Pool, refused: Refused): Promise<() => Promise<void>> {
  const { table, on, tenant, message, condition = 'raise_exception' } = refused;
  const row = on === 'insert' ? 'new' : 'old';
  const when = tenant === undefined ? '' : `when (${row}.tenant = '${tenant}')`;
  // A cluster takes triggers only from those who ask for them. One server ignores the setting.
  await inTurn(pool, [
    'set citus.enable_unsafe_triggers = on',
    `create function refuse() returns trigger language plpgsql as
       $$ begin raise exception '${message}' using errcode = '${condition}'; end $$`,
    `create trigger refuse before ${on} on ${table} for each row ${when} execute function refuse()`,
    'reset citus.enable_unsafe_triggers',
  ]);
  return () => inTurn(pool, [`drop trigger refuse on ${table}`, 'drop function refuse()']);
}

async function inTurn(pool: pg.Pool, statements: readonly string[]): Promise<void> {
  const client = await pool.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    client.release();
  }
}
