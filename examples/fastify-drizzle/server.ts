import * as who from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import { and, desc, eq, gte, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import Fastify from 'fastify';
import pg from 'pg';

const products = pgTable('products', {
  id: integer().primaryKey(),
  name: text().notNull(),
  stock: integer().notNull(),
});

const orders = pgTable('orders', {
  id: integer().primaryKey().generatedAlwaysAsIdentity(),
  product: integer().notNull(),
  quantity: integer().notNull(),
  state: text().notNull().default('open'),
});

interface Person {
  id: string;
  name: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    person: Person;
  }
}

// Yours come from sessions.
const people = new Map<string, Person>([
  ['Bearer jane', { id: 'u-17', name: 'Jane Doe' }],
  ['Bearer john', { id: 'u-18', name: 'John Roe' }],
]);

// This line, and that of `who` below, are all that Annals adds to the shop.
const pool = attribute(new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 }));
const db = drizzle({ client: pool });
const app = Fastify();

app.addHook('onRequest', async (request, reply) => {
  const person = people.get(request.headers.authorization ?? '');
  if (person === undefined) return await reply.status(401).send({ error: 'sign in first' });
  request.person = person;
});
await app.register(who.fastify(({ person }) => ({ actor: person.name, actorId: person.id })));

app.get('/orders', async () => await db.select().from(orders).orderBy(desc(orders.id)).limit(20));

app.post<{ Body: { product: number; quantity: number } }>('/orders', async ({ body }, reply) => {
  const order = await db.transaction(async (transaction) => {
    const taken = await transaction
      .update(products)
      .set({ stock: sql`${products.stock} - ${body.quantity}` })
      .where(and(eq(products.id, body.product), gte(products.stock, body.quantity)));
    if (taken.rowCount === 0) return undefined;
    return (await transaction.insert(orders).values(body).returning())[0];
  });
  if (order === undefined) return await reply.status(409).send({ error: 'not in stock' });
  return await reply.status(201).send(order);
});

app.post<{ Params: { id: number } }>('/orders/:id/cancel', async ({ params }, reply) => {
  const changed = await db.update(orders).set({ state: 'cancelled' }).where(eq(orders.id, params.id)).returning();
  return changed[0] ?? (await reply.status(404).send({ error: 'no such order' }));
});

app.addHook('onClose', () => pool.end());
process.once('SIGTERM', () => void app.close());
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }));
