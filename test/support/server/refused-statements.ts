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
 * Makes the statements of a table fail until the caller calls the returned function: a trigger stands for whatever may
 * go wrong. In a cluster each shard has the trigger.
 */
export async function refuseStatements(pool: pg.Pool, refused: Refused): Promise<() => Promise<void>> {
  const { table, on, tenant, message, condition = 'raise_exception' } = refused;
  const row = on === 'insert' ? 'new' : 'old';
  const when = tenant === undefined ? '' : `when (${row}.tenant = '${tenant}')`;
  await inTurn(pool, [
    `create function refuse() returns trigger language plpgsql as
       $$ begin raise exception '${message}' using errcode = '${condition}'; end $$`,
    `create trigger refuse before ${on} on ${table} for each row ${when} execute function refuse()`,
  ]);
  return () => inTurn(pool, [`drop trigger refuse on ${table}`, 'drop function refuse()']);
}

/** A cluster takes triggers only from those who ask for them. One server ignores the setting. */
async function inTurn(pool: pg.Pool, statements: readonly string[]): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('set citus.enable_unsafe_triggers = on');
    for (const statement of statements) await client.query(statement);
    await client.query('reset citus.enable_unsafe_triggers');
  } finally {
    client.release();
  }
}
