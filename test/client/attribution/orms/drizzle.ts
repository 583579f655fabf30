import { attribute } from '@annals/client/pg';
import { between, eq, sql } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';
import type { OpenOrm, Statements } from './orm.ts';

const items = pgTable('items', { id: integer().primaryKey(), note: text() });

const statements = (db: Pick<NodePgDatabase, 'select' | 'insert' | 'update' | 'execute'>): Statements => ({
  read: async (item) => await db.select().from(items).where(eq(items.id, item)),
  insert: async (item) => await db.insert(items).values({ id: item }).returning(),
  update: async (item, note) => await db.update(items).set({ note }).where(eq(items.id, item)),
  updateAll: async (first, last, note) =>
    await db
      .update(items)
      .set({ note })
      .where(between(items.id, first, last)),
  raw: async (item) => await db.execute(sql`insert into items (id) values (${item})`),
});

export const open: OpenOrm = async (connectionString) => {
  const pool = attribute(new pg.Pool({ connectionString, max: 4 }));
  const db = drizzle({ client: pool });
  return {
    ...statements(db),
    close: () => pool.end(),
    transaction: (run) =>
      db.transaction((transaction) =>
        run({
          ...statements(transaction),
          nested: (inside) => transaction.transaction((savepoint) => inside(statements(savepoint))),
        }),
      ),
  };
};
