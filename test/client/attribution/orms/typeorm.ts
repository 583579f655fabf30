import { attribute } from '@annals/client/pg';
import pg from 'pg';
import { Between, DataSource, type EntityManager, EntitySchema } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import type { OpenOrm, Statements } from './orm.ts';

interface Item {
  id: number;
  note: string | null;
}

const items = new EntitySchema<Item>({
  name: 'items',
  columns: { id: { type: 'int', primary: true }, note: { type: 'text', nullable: true } },
});

const statements = (manager: EntityManager): Statements => ({
  read: (item) => manager.findOneBy(items, { id: item }),
  insert: (item) => manager.save(items, { id: item }),
  update: async (item, note) => manager.save(items, { ...(await manager.findOneByOrFail(items, { id: item })), note }),
  updateAll: (first, last, note) => manager.update(items, { id: Between(first, last) }, { note }),
  raw: (item) => manager.query('insert into items (id) values ($1)', [item]),
});

export const open: OpenOrm = async (url) => {
  const source = new DataSource({ type: 'postgres', driver: pg, url, extra: { max: 4 }, entities: [items] });
  await source.initialize();
  attribute((source.driver as PostgresDriver).master);
  return {
    ...statements(source.manager),
    close: () => source.destroy(),
    transaction: (run) =>
      source.transaction((manager) =>
        run({
          ...statements(manager),
          nested: (inside) => manager.transaction((savepoint) => inside(statements(savepoint))),
        }),
      ),
  };
};
