import type pg from 'pg';
import { type TellOptions, tellAuthor } from './author.ts';

/** Runs the work in a transaction whose changes are the current author's. */
export async function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
  options: TellOptions = {},
): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await tellAuthor((text, values) => client.query(text, values), options);
    const result = await work(client);
    await client.query('commit');
    client.release();
    return result;
  } catch (error) {
    const rolledBack = await client.query('rollback').then(
      () => true,
      () => false,
    );
    client.release(!rolledBack);
    throw error;
  }
}
