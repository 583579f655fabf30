import { attribute } from '@annals/client/pg';
import { defineEntity, MikroORM, p, type SqlEntityManager } from '@mikro-orm/postgresql';
import type { OpenOrm, Statements } from './orm.ts';

const Item = defineEntity({
  name: 'Item',
  tableName: 'items',
  properties: { id: p.integer().primary(), note: p.text().nullable() },
});

/** Each call of `manager` outside of a transaction is a request of its own. */
const statements = (manager: () => SqlEntityManager): Statements => ({
  read: (item) => manager().findOne(Item, item),
  async insert(item) {
    const em = manager();
    em.create(Item, { id: item });
    await em.flush();
  },
  async update(item, note) {
    const em = manager();
    (await em.findOneOrFail(Item, item)).note = note;
    await em.flush();
  },
  updateAll: (first, last, note) => manager().nativeUpdate(Item, { id: { $gte: first, $lte: last } }, { note }),
  raw: (item) => manager().execute('insert into items (id) values (?)', [item]),
});

export const open: OpenOrm = async (clientUrl) => {
  const orm = await MikroORM.init({
    clientUrl,
    entities: [Item],
    pool: { min: 0, max: 4 },
    driverOptions: { onPoolCreated: attribute },
  });
  return {
    ...statements(() => orm.em.fork()),
    close: () => orm.close(),
    transaction: (run) =>
      orm.em.fork().transactional((em) =>
        run({
          ...statements(() => em),
          nested: (inside) => em.transactional((savepoint) => inside(statements(() => savepoint))),
        }),
      ),
  };
};
