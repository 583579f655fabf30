import { attribute } from '@annals/client/pg';
import pg from 'pg';
import type { OpenOrm, Statements } from './orm.ts';

const statements = (on: pg.Pool | pg.PoolClient): Statements => ({
  read: (item) => on.query('select * from items where id = $1', [item]),
  insert: (item) => on.query('insert into items (id) values ($1)', [item]),
  update: (item, note) => on.query('update items set note = $2 where id = $1', [item, note]),
  updateAll: (first, last, note) =>
    on.query('update items set note = $3 where id between $1 and $2', [first, last, note]),
  raw: (item) => on.query(`insert into items (id) values (${item})`),
});

export const open: OpenOrm = async (connectionString) => {
  const pool = attribute(new pg.Pool({ connectionString, max: 4 }));
  return {
    ...statements(pool),
    close: () => pool.end(),
    async transaction(run) {
      const client = await pool.connect();
      const nested = async (inside: (transaction: Statements) => Promise<void>) => {
        await client.query('savepoint inside');
        try {
          await inside(statements(client));
          await client.query('release inside');
        } catch (error) {
          await client.query('rollback to inside');
          throw error;
        }
      };
      try {
        await client.query('begin');
        await run({ ...statements(client), nested });
        await client.query('commit');
      } catch (error) {
        await client.query('rollback');
        throw error;
      } finally {
        client.release();
      }
    },
  };
};
