import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, expect, inject, test } from 'vitest';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { compareCodePoints } from '../support/oracle/json-model.ts';
import { readInstances, storeInstances } from '../support/server/instances.ts';
import { schemaClient } from '../support/server/schema-client.ts';
import { startTestServer } from '../support/server/server.ts';

const place = { tenant: 'acme', type: 'THING' };
const words = [
  'a',
  'B',
  'b',
  'A',
  'Z',
  'z',
  'ä',
  'Ä',
  'å',
  'é',
  'e',
  'f',
  '-a',
  'a b',
  'ab',
  '1',
  '10',
  '9',
  '😀',
  '\uffee',
  'ß',
  'ss',
];
const inOrder = words.toSorted(compareCodePoints);

// Swedish sorts ä and å behind z, ignores case at first, and passes over blanks and hyphens.
const admin = new pg.Client(inject('databaseUrl'));
await admin.connect();
const name = `test_${randomBytes(8).toString('hex')}`;
await admin.query(
  `create database ${name} template template0 encoding 'UTF8' locale_provider icu icu_locale 'sv' locale 'C'`,
);
const url = new URL(inject('databaseUrl'));
url.pathname = name;
const pool = createPool(url.href);
await migrate(pool);
const server = await startTestServer({
  database: { url: url.href, pool, db: createDatabase(pool), drop: () => pool.end() },
});
const token = await server.token('acme');
await schemaClient(server, 'acme', token).type('THING');
await storeInstances(
  server,
  place,
  words.map((word) => ({ id: word, content: { members: { word, list: [word] } } })),
);

afterAll(async () => {
  await server.close();
  await server.database.drop();
  await admin.query(`drop database ${name} with (force)`);
  await admin.end();
});

test.each(['_id', 'word', 'list', '_id:DESC', 'word:DESC', 'list:DESC'])(
  'in a database of another collation the order by %s is that of code points, page by page',
  async (sort) => {
    // Lists sort by their JSON, in which a quote comes after the word: it sorts behind a blank.
    const shown = (word: string) => (sort.startsWith('list') ? JSON.stringify([word]) : word);
    const ascending = words.toSorted((one, other) => compareCodePoints(shown(one), shown(other)));
    const expected = sort.endsWith('DESC') ? ascending.toReversed() : ascending;
    const seen: string[] = [];
    let page = await readInstances(server, { ...place, token, by: 'list' }, { sort, pageSize: 3 });
    seen.push(...page.ids);
    while (page.next !== null) {
      page = await readInstances(server, { ...place, token, by: 'list' }, { sort, pageSize: 3, next: page.next });
      seen.push(...page.ids);
    }
    expect(seen).toEqual(expected);
  },
);

test('comparisons and globs of q compare by code point as well', async () => {
  const found = (q: string) => readInstances(server, { ...place, token, by: 'search', q }, {}).then(({ ids }) => ids);
  expect(await found('word:(>"Z" AND <"b")')).toEqual(
    inOrder.filter((word) => compareCodePoints(word, 'Z') > 0 && compareCodePoints(word, 'b') < 0),
  );
  expect(await found('word:a*')).toEqual(inOrder.filter((word) => word.startsWith('a')));
});
