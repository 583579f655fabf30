import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { readSource } from '../../../src/postgres/source/source.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { checkMapping, checkMappingAt, type TableReport } from '../../../src/sources/capture/check-mapping.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const database = closeAfterAll(await createTestDatabase());
const client = new pg.Client(database.url);
await client.connect();
await client.query(`
    create schema shop;
    create table shop.orders (
      id bigint primary key, title text, card text, payload text, tags text[], placed timestamptz, at timestamp,
      total numeric, twice numeric generated always as (total * 2) stored);
    alter table shop.orders replica identity full;
    create table shop.lines (id int primary key, org text, card text);
    create table shop.loose (id int);
    create table shop.parted (id int primary key, org text) partition by range (id);
    create table shop.parted_1 partition of shop.parted for values from (0) to (10);
    create table shop.tokens (secret text primary key, title text);
    alter table shop.tokens replica identity full;
    create view shop.seen as select 1 as id`);
await client.end();

async function reports(
  tables: Record<string, object>,
  tenant: object | undefined = { value: 'acme' },
  rest: object = {},
) {
  const mapping = readMapping(
    JSON.stringify({ version: 1, ...(tenant === undefined ? {} : { tenant }), tables, ...rest }),
  );
  return await checkMappingAt(mapping, readSource(database.url));
}

const missing = (found: TableReport[]) => found.flatMap((report) => report.missing.map(({ message }) => message));

test('a table whose mapping fits tells its columns and how their values stand in documents', async () => {
  const table = { entity: 'order', name: 'title', mask: ['card'], ignore: ['at'], json: ['payload'] };
  expect(await reports({ 'shop.orders': table })).toEqual([
    {
      table: 'shop.orders',
      entity: 'order',
      id: ['id'],
      tenant: 'acme',
      name: 'title',
      masked: ['card'],
      ignored: ['at'],
      truncate: 'deletes',
      snapshot: true,
      columns: {
        id: 'number',
        title: 'text',
        card: 'text',
        payload: 'json',
        tags: 'array of text',
        placed: 'time in UTC',
        total: 'number',
      },
      generated: ['twice'],
      partitions: 0,
      before: 'whole row',
      missing: [],
      advice: [],
    },
  ]);
});

test('rules for missing columns are reported: a mask of such a column protects nothing', async () => {
  const table = { entity: 'order', mask: ['crad', 'payload.x'], context: { ip: 'addr' }, actor: 'who' };
  expect(missing(await reports({ 'shop.orders': table }))).toEqual([
    'shop.orders has no column who (actor)',
    'shop.orders has no column addr (context)',
    'shop.orders has no column crad (mask)',
  ]);
});

test('a mask of the primary key is reported, also where the rule is that of the entity', async () => {
  const entities = { order: { mask: ['id'] } };
  const problems = ['shop.orders: the column id is of its id and cannot be masked'];
  expect(
    missing(await reports({ 'shop.orders': { entity: 'order' } }, undefined, { tenant: { value: 'acme' }, entities })),
  ).toEqual(problems);
  expect(missing(await reports({ 'shop.orders': { entity: 'order', mask: ['id'] } }))).toEqual(problems);
});

test('what prevents publishing a table is reported with the statement that fixes it', async () => {
  const found = await reports(
    { 'shop.lines': { entity: 'line' }, 'shop.loose': { entity: 'loose' }, 'shop.parted': { entity: 'parted' } },
    { column: 'org' },
  );
  expect(found[0]?.missing).toMatchObject([
    {
      message: 'shop.lines: org is not in its replica identity',
      statement: 'alter table "shop"."lines" replica identity full;',
    },
  ]);
  expect(missing(found.slice(1, 2))).toEqual([
    'shop.loose has no column org (tenant)',
    'shop.loose has no primary key, and the mapping names no id for it',
  ]);
  expect(found[2]).toMatchObject({ partitions: 1, before: 'key' });
  expect(found[2]?.missing.map(({ statement }) => statement)).toEqual([
    'alter table "shop"."parted" replica identity full;',
    'alter table "shop"."parted_1" replica identity full;',
  ]);
  expect(missing(await reports({ 'shop.none': { entity: 'none' } }))).toEqual(['the source has no table shop.none']);
});

test('an id, a name or a related id that sounds like a secret is reported: nothing can mask it', async () => {
  const advised = async (tables: Record<string, object>) =>
    (await reports(tables)).flatMap(({ advice }) =>
      advice.map(({ message }) => message.replace(/, which seems.*/, '')),
    );
  expect(
    await advised({
      'shop.orders': { entity: 'order', name: 'card', related: [{ entity: 'client', id: ['title'] }] },
      'shop.tokens': { entity: 'token' },
    }),
  ).toEqual(['shop.tokens: its id is the column secret']);
  for (const column of [
    'secret',
    'api_key',
    'apiKey',
    'accessToken',
    'session_id',
    'sid',
    'password_hash',
    'card_number',
    'PIN',
  ]) {
    const mapping = readMapping(JSON.stringify({ version: 1, tables: { 'a.b': { entity: 'c', id: [column] } } }));
    expect(checkMapping(mapping)[0]?.advice, column).toHaveLength(1);
  }
  for (const column of ['id', 'token_id', 'api_key_id', 'keyword', 'pinned', 'tokens_used', 'secretary', 'card']) {
    const mapping = readMapping(
      JSON.stringify({ version: 1, tables: { 'a.b': { entity: 'c', id: [column], name: column } } }),
    );
    expect(checkMapping(mapping)[0]?.advice, column).toEqual([]);
  }
});

test('without a source the report covers the mapping alone', () => {
  const mapping = readMapping(
    '{"version":1,"tables":{"a.b":{"entity":"c","related":[{"entity":"d","id":["e","f"]}]}}}',
  );
  expect(checkMapping(mapping)).toMatchObject([
    {
      id: 'primary key',
      tenant: 'none',
      related: ['d by e, f'],
      missing: [{ message: expect.stringContaining('names no tenant') }],
    },
  ]);
});

test('the command prints a line of JSON for each table, and exits with 1 where something is missing', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'mapping.json');
  const write = (table: object) =>
    writeFile(file, JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables: { 'shop.lines': table } }));
  await write({ entity: 'line' });
  const good = await annals(['mapping', 'check', file, '--from', database.url]);
  const note =
    'annals: note: shop.lines: its log has only the key of a row before a change. Capture compares an update with the document in the history, if that ' +
    'is complete; otherwise the entry has the new row. A delete has only the key, and a masked value counts as changed in each ' +
    'update. With replica identity full the log has all values before a change, and becomes larger; to have that, run: ' +
    'alter table "shop"."lines" replica identity full;\n';
  expect({ code: good.code, stderr: good.stderr }).toEqual({ code: 0, stderr: note });
  expect(JSON.parse(good.stdout)).toMatchObject({ table: 'shop.lines', id: ['id'], missing: [] });
  await write({ entity: 'line', name: 'card' });
  const bad = await annals(['mapping', 'check', file], { ANNALS_SOURCE_URL: database.url });
  expect(bad.code).toBe(1);
  expect(bad.stderr).toBe(
    `annals: shop.lines: card is not in its replica identity; run: alter table "shop"."lines" replica identity full;\n${note}`,
  );
  await write({ entity: 'line', snapshots: true });
  expect(await annals(['mapping', 'check', file])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('tables → shop.lines → snapshots: is not a key that this object can have'),
  });
});
