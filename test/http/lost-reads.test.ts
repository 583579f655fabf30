import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { lockTables } from '../support/server/locked-tables.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';

const instances = '/schema/acme/custom-entities/THING/instances';

const server = closeAfterAll(await startTestServer());
// Ended on purpose.
server.database.pool.on('error', () => {});
const token = await server.token('acme');
const thing = { id: 'THING', name: { en: 'Thing' } };
expect((await server.call('/schema/acme/custom-entities', { token, json: thing })).status).toBe(201);

/**
 * Ends the connections of requests that wait for the table, so many times; each time another statement has to have
 * come. The upkeep of indexes waits for it too.
 */
async function whileLost(times: number, table: string, request: () => Promise<Response>): Promise<Response> {
  const { pool } = server.database;
  const lock = await lockTables(server.database, [table]);
  const ended = new Set<number>();
  try {
    const answer = request();
    for (let time = 1; time <= times; time += 1) {
      await eventually(async () => {
        const { rows } = await pool.query<{ pid: number }>(
          `select pid, pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock' and query like '%' || $1 || '%' and pid <> all ($2)
               and query !~* '^\\s*(create|drop|analyze)'`,
          [table, [...ended]],
        );
        for (const { pid } of rows) ended.add(pid);
        return ended.size;
      }).toBe(time);
    }
    await lock.release();
    return await answer;
  } finally {
    await lock.release();
  }
}

test('a read whose connection is lost is carried out once more', async () => {
  const answer = await whileLost(1, 'custom_instance', () => server.call(instances, { token }));
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual([]);
});

test('a search is a read', async () => {
  const search = { token, json: { q: 'name:x' } };
  expect((await whileLost(1, 'custom_instance', () => server.call(`${instances}/search`, search))).status).toBe(200);
});

test('a read whose connection is lost twice is 503', async () => {
  const answer = await whileLost(2, 'custom_instance', () => server.call(instances, { token }));
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('1');
});

test('a write whose connection is lost is 503 at once, and is not carried out twice', async () => {
  const json = { id: 'one', name: 'x' };
  const answer = await whileLost(1, 'custom_instance', () => server.call(instances, { token, json }));
  expect(answer.status).toBe(503);
  expect(await (await server.call(instances, { token })).json()).toEqual([]);
});
