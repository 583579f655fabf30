import { attribute } from '@annals/client/pg';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import type { OpenOrm, Statements } from './orm.ts';

interface Tables {
  items: { id: number; note: string | null };
}

const statements = (db: Kysely<Tables>): Statements => ({
  read: (item) => db.selectFrom('items').selectAll().where('id', '=', item).execute(),
  insert: (item) => db.insertInto('items').values({ id: item, note: null }).returning('id').execute(),
  update: (item, note) => db.updateTable('items').set({ note }).where('id', '=', item).execute(),
  updateAll: (first, last, note) =>
    db.updateTable('items').set({ note }).where('id', '>=', first).where('id', '<=', last).execute(),
  raw: (item) => sql`insert into items (id) values (${item})`.execute(db),
});

export const open: OpenOrm = async (connectionString) => {
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: attribute(new pg.Pool({ connectionString, max: 4 })) }),
  });
  return {
    ...statements(db),
    close: () => db.destroy(),
    async transaction(run) {
      const transaction = await db.startTransaction().execute();
      const nested = async (inside: (transaction: Statements) => Promise<void>) => {
        const savepoint = await transaction.savepoint('inside').execute();
        try {
          await inside(statements(savepoint));
          await savepoint.releaseSavepoint('inside').execute();
        } catch (error) {
          await savepoint.rollbackToSavepoint('inside').execute();
          throw error;
        }
      };
      try {
        await run({ ...statements(transaction), nested });
        await transaction.commit().execute();
      } catch (error) {
        await transaction.rollback().execute();
        throw error;
      }
    },
  };
};
