import { attribute } from '@annals/client/pg';
import { DataTypes, Op, Sequelize, type Transaction } from 'sequelize';
import type { OpenOrm, Statements } from './orm.ts';

export const open: OpenOrm = async (url) => {
  const sequelize = new Sequelize(url, { logging: false, pool: { max: 4 } });
  sequelize.addHook('afterConnect', (connection) => void attribute(connection as object));
  const items = sequelize.define(
    'items',
    { id: { type: DataTypes.INTEGER, primaryKey: true }, note: DataTypes.TEXT },
    { timestamps: false },
  );
  const statements = (transaction: Transaction | null = null): Statements => ({
    read: (item) => items.findByPk(item, { transaction }),
    insert: (item) => items.create({ id: item }, { transaction }),
    update: async (item, note) =>
      await (await items.findByPk(item, { transaction, rejectOnEmpty: true })).update({ note }, { transaction }),
    updateAll: (first, last, note) =>
      items.update({ note }, { where: { id: { [Op.between]: [first, last] } }, transaction }),
    raw: (item) => sequelize.query('insert into items (id) values (?)', { replacements: [item], transaction }),
  });
  return {
    ...statements(),
    close: () => sequelize.close(),
    transaction: (run) =>
      sequelize.transaction((transaction) =>
        run({
          ...statements(transaction),
          nested: (inside) => sequelize.transaction({ transaction }, (savepoint) => inside(statements(savepoint))),
        }),
      ),
  };
};
