import { Kysely, PostgresDialect, sql } from 'kysely';
import { expect, test } from 'vitest';
import { actAs, tellAuthor } from '../../examples/adapter/author.ts';
import { inTransaction as withKysely } from '../../examples/adapter/kysely.ts';
import { inTransaction as withPg } from '../../examples/adapter/pg.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { createEmptyTestDatabase } from '../support/server/database.ts';

const database = closeAfterAll(await createEmptyTestDatabase());
const settings = `select current_setting('annals.actor', true) as actor, current_setting('annals.context', true) as context`;
const jane = { actor: 'Jane Doe', context: { ip: '10.0.0.1' } };
const janesSettings = { actor: 'Jane Doe', context: '{"ip":"10.0.0.1"}' };

test('pg: a transaction of a request has its author, at any depth of awaiting, and nothing is left behind', async () => {
  const ask = () => withPg(database.pool, async (client) => (await client.query(settings)).rows[0]);
  const [janes, johns] = await Promise.all([
    actAs(jane, async () => {
      await Promise.resolve();
      return await ask();
    }),
    actAs({ actor: 'John Roe' }, ask),
  ]);
  expect(janes).toEqual(janesSettings);
  expect(johns).toEqual({ actor: 'John Roe', context: '' });
  for (let connection = 0; connection < 4; connection++) {
    expect([null, '']).toContain((await database.pool.query(settings)).rows[0].actor);
  }
});

test('Kysely: a transaction of a request has its author', async () => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: database.pool }) });
  const found = await actAs(jane, () =>
    withKysely(db, async (transaction) => {
      const { rows } = await sql.raw<Record<string, unknown>>(settings).execute(transaction);
      return rows[0];
    }),
  );
  expect(found).toEqual(janesSettings);
});

test('outside of a transaction it refuses, and without an author it does nothing', async () => {
  const run = (text: string, values: unknown[]) => database.pool.query(text, values);
  await expect(actAs(jane, () => tellAuthor(run))).rejects.toThrow('must run in a transaction');
  await expect(tellAuthor(run)).resolves.toBeUndefined();
});

test('the message for capture is written only with the option capture', async () => {
  const statements: string[] = [];
  const run = async (text: string) => {
    statements.push(text);
    return { rows: [{ inside: true }] };
  };
  await actAs(jane, () => tellAuthor(run));
  expect(statements.join()).not.toContain('pg_logical_emit_message');
  await actAs(jane, () => tellAuthor(run, { capture: true }));
  expect(statements.join()).toContain(`pg_logical_emit_message(true, 'annals.actor'`);
});
