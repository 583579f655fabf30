import { attribute } from '@annals/client/pg';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { testOrm } from '../orms/law.ts';
import type { OpenOrm, Statements } from '../orms/orm.ts';
import { useShop } from '../shop.ts';
import { type Prisma, PrismaClient } from './generated/client.ts';

// A query of Prisma's is sent where it is awaited.
const statements = (db: Prisma.TransactionClient): Statements => ({
  read: async (id) => await db.item.findUnique({ where: { id } }),
  insert: async (id) => await db.item.create({ data: { id } }),
  update: async (id, note) => await db.item.update({ where: { id }, data: { note } }),
  updateAll: async (first, last, note) =>
    await db.item.updateMany({ where: { id: { gte: first, lte: last } }, data: { note } }),
  raw: async (item) => await db.$executeRaw`insert into items (id) values (${item})`,
});

const open: OpenOrm = async (connectionString) => {
  const pool = attribute(new pg.Pool({ connectionString, max: 4 }));
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool, { disposeExternalPool: true }) });
  return {
    ...statements(prisma),
    close: () => prisma.$disconnect(),
    transaction: (run) =>
      prisma.$transaction((transaction) =>
        run({
          ...statements(transaction),
          nested: (inside) => transaction.$transaction((savepoint) => inside(statements(savepoint))),
        }),
      ),
  };
};

testOrm(useShop(), open);
