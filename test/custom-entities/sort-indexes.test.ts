import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonModel } from '../support/oracle/json-model.ts';
import { annals } from '../support/server/command.ts';
import { readInstances, storeInstances } from '../support/server/instances.ts';
import { schemaClient } from '../support/server/schema-client.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { recordStatements } from '../support/server/statements.ts';

const place = { tenant: 'acme', type: 'THING' };
let server: TestServer;
let token: string;
let environment: Record<string, string>;

beforeAll(async () => {
  server = await startTestServer();
  token = await server.token('acme');
  await schemaClient(server, 'acme', token).type('THING');
  environment = {
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    LOG_LEVEL: 'silent',
  };
});

afterAll(() => server.close());

test('an index is made, listed and dropped, and a second call is no error', async () => {
  const made = await annals(['index', 'create', '--sort', "a.b:DESC,it's\\,odd"], environment);
  expect([made.code, made.stderr]).toEqual([0, '']);
  expect(JSON.parse(made.stdout)).toMatchObject({ sort: "a.b:DESC,it's\\,odd:ASC,_id:ASC", bytes: expect.any(Number) });
  expect((await annals(['index', 'create', '--sort', "a.b:desc,it's\\,odd,_id"], environment)).stdout).toBe(
    made.stdout,
  );
  expect(JSON.parse((await annals(['index', 'list'], environment)).stdout)).toEqual([JSON.parse(made.stdout)]);
  expect((await annals(['index', 'drop', '--sort', "a.b:DESC,it's\\,odd"], environment)).code).toBe(0);
  expect((await annals(['index', 'drop', '--sort', "a.b:DESC,it's\\,odd"], environment)).code).toBe(1);
  expect((await annals(['index', 'list'], environment)).stdout).toBe('[]\n');
});

test.each([
  [['index']],
  [['index', 'make']],
  [['index', 'create']],
  [['index', 'create', '--sort', '_id']],
  [['index', 'create', '--sort', 'a,b,c,d,e']],
  [['index', 'create', '--sort', 'a:UP']],
])('wrong usage: %j', async (args) => expect((await annals(args, environment)).code).toBe(2));

test('pages of the sort are read along the index, in both directions, and longest values fit it', async () => {
  const longest = (nth: number) => `${'\u{10fffd}'.repeat(127)}${nth % 7}`;
  await storeInstances(
    server,
    place,
    Array.from({ length: 3000 }, (_, index) => ({
      id: `${'\u{10fffd}'.repeat(62)}${String(index).padStart(4, '0')}`,
      content: {
        members: Object.fromEntries(['a', 'b', 'c', 'd'].map((name): [string, JsonModel] => [name, longest(index)])),
      },
    })),
  );
  const statements = recordStatements(...server.context.pool.pools);
  for (const sort of ['a,b:DESC,c,d', 'a:DESC,b,c:DESC,d:DESC,_id:DESC', 'b']) {
    expect(await annals(['index', 'create', '--sort', sort], environment)).toMatchObject({ code: 0, stderr: '' });
    statements.length = 0;
    const read = (paging: Record<string, string>) =>
      readInstances(server, { ...place, token, by: 'list' }, { sort, pageSize: 100, ...paging });
    const first = await read({});
    const second = await read({ next: first.next ?? '' });
    expect((await read({ prev: second.prev ?? '' })).ids).toEqual(first.ids);
    const reading = statements.filter(({ text }) => text.includes('custom_instance'));
    expect(reading).toHaveLength(3);
    for (const { text, values } of reading) {
      const { rows } = await server.database.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toContain('custom_instance_sort_');
      expect(plan).not.toContain('Seq Scan');
    }
  }
});
