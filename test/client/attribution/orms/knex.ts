import { attribute } from '@annals/client/pg';
import knex, { type Knex } from 'knex';
import type { OpenOrm, Statements } from './orm.ts';

const statements = (db: Knex): Statements => ({
  read: async (item) => await db('items').where({ id: item }),
  insert: async (item) => await db('items').insert({ id: item }).returning('id'),
  update: async (item, note) => await db('items').where({ id: item }).update({ note }),
  updateAll: async (first, last, note) => await db('items').whereBetween('id', [first, last]).update({ note }),
  raw: async (item) => await db.raw('insert into items (id) values (?)', [item]),
});

export const open: OpenOrm = async (connection) => {
  const db = knex({
    client: 'pg',
    connection,
    pool: {
      min: 0,
      max: 4,
      afterCreate: (client: object, done: (error: Error | null, client: object) => void) =>
        done(null, attribute(client)),
    },
  });
  return {
    ...statements(db),
    close: () => db.destroy(),
    transaction: (run) =>
      db.transaction((transaction) =>
        run({
          ...statements(transaction),
          nested: (inside) => transaction.transaction((savepoint) => inside(statements(savepoint))),
        }),
      ),
  };
};
