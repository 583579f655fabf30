import { expect, test } from 'vitest';
import { readSource } from '../../../src/postgres/source/source.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { checkMappingAt } from '../../../src/sources/capture/check-mapping.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { createSourceDatabase, startSourceServer } from '../../support/server/source-server.ts';

const server = closeAfterAll(await startSourceServer());

/** `annals mapping init` of a database with these tables. */
async function init(tables: string, ...args: string[]) {
  const source = await createSourceDatabase(server);
  await source.pool.query(tables);
  const { code, stdout, stderr } = await annals(['mapping', 'init', '--from', source.url, ...args]);
  expect(code).toBe(0);
  const reports = await checkMappingAt(readMapping(stdout), readSource(source.url));
  return { source, file: JSON.parse(stdout), stdout, stderr, faults: reports.flatMap(({ missing }) => missing) };
}

// As TypeORM names what it makes, in a shop such as Vendure.
const typeOrm = `
  create table "user" ("createdAt" timestamp not null, "updatedAt" timestamp not null, "deletedAt" timestamp, identifier varchar, "lastLogin" timestamp, id serial primary key);
  create table customer ("updatedAt" timestamp, title varchar, "firstName" varchar, "emailAddress" varchar, id serial primary key, "userId" int unique references "user");
  create table authentication_method ("passwordHash" varchar, "verificationToken" varchar, "externalIdentifier" varchar, id serial primary key, "userId" int references "user");
  create table channel ("updatedAt" timestamp, code varchar unique, token varchar unique, id serial primary key);
  create table product ("updatedAt" timestamp, "deletedAt" timestamp, id serial primary key);
  create table product_translation ("languageCode" varchar, name varchar, slug varchar, id serial primary key, "baseId" int references product);
  create table product_channels_channel ("productId" int references product, "channelId" int references channel, primary key ("productId", "channelId"));
  create table "order" (code varchar unique, "customerId" int references customer, id serial primary key, "subTotal" int, total int generated always as ("subTotal" * 2) stored);
  create table session (token varchar, id serial primary key);
  create table job_record (id serial primary key, data text);
  create table migrations (id serial primary key, name varchar);
  create table search_index_item ("languageCode" varchar, "productVariantId" int, primary key ("languageCode", "productVariantId"));`;

test('a shop in the style of TypeORM', async () => {
  const { file, stdout, stderr } = await init(typeOrm, '--tenant', 'acme');
  expect(file.tenant).toEqual({ value: 'acme' });
  expect(file.tables).toEqual({
    'public.authentication_method': {
      entity: 'authentication-method',
      id: ['id'],
      related: [{ entity: 'user', id: ['userId'] }],
      mask: ['passwordHash', 'verificationToken'],
    },
    'public.channel': { entity: 'channel', id: ['id'], name: 'code', mask: ['token'], ignore: ['updatedAt'] },
    'public.customer': {
      entity: 'customer',
      id: ['id'],
      related: [{ entity: 'user', id: ['userId'] }],
      ignore: ['updatedAt'],
    },
    'public.order': {
      entity: 'order',
      id: ['id'],
      name: 'code',
      related: [{ entity: 'customer', id: ['customerId'] }],
    },
    'public.product': { entity: 'product', id: ['id'], ignore: ['updatedAt'] },
    'public.product_channels_channel': {
      entity: 'product-channels-channel',
      id: ['productId', 'channelId'],
      related: [
        { entity: 'channel', id: ['channelId'] },
        { entity: 'product', id: ['productId'] },
      ],
    },
    'public.product_translation': {
      entity: 'product-translation',
      id: ['id'],
      name: 'name',
      related: [{ entity: 'product', id: ['baseId'] }],
    },
    'public.user': { entity: 'user', id: ['id'], ignore: ['updatedAt', 'lastLogin'] },
  });
  // One member of a table a line.
  expect(stdout).toContain('\n      "related": [{ "entity": "product", "id": ["baseId"] }]\n    },\n');
  expect(stderr).toContain('annals: 8 of 12 tables are in the mapping.');
  for (const table of ['session', 'job_record', 'migrations', 'search_index_item'])
    expect(stderr).toMatch(new RegExp(`^  [^:]+: .*public\\.${table}\\b`, 'm'));
});

// As MikroORM names what it makes, in a shop such as Medusa: no foreign keys between modules.
const mikroOrm = `
  create table product (id text primary key, title text not null, handle text, metadata jsonb, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz);
  create table sales_channel (id text primary key, name text not null, updated_at timestamptz);
  create table product_sales_channel (product_id varchar(255) not null, sales_channel_id varchar(255) not null, id varchar(255) not null, primary key (product_id, sales_channel_id));
  create table price (id text primary key, amount numeric, raw_amount jsonb, currency_code text);
  create table payment_session (id text primary key, data jsonb, raw_amount jsonb);
  create table provider_identity (id text primary key, entity_id text, provider_metadata jsonb);
  create table api_key (id text primary key, token text, salt text, redacted text, title text, last_used_at timestamptz);
  create table workflow_execution (id varchar, workflow_id varchar, primary key (id));
  create table mikro_orm_migrations (id serial primary key, name varchar);
  create table link_module_migrations (id serial primary key, table_name varchar);`;

test('a shop in the style of MikroORM, of which all tables can be recorded once their identity is whole', async () => {
  const { source, file, stdout, stderr, faults } = await init(mikroOrm);
  expect(file.tables).toEqual({
    'public.api_key': {
      entity: 'api-key',
      id: ['id'],
      name: 'title',
      mask: ['token', 'salt'],
      ignore: ['last_used_at'],
    },
    'public.payment_session': { entity: 'payment-session', id: ['id'], mask: ['data', 'raw_amount'] },
    'public.price': { entity: 'price', id: ['id'] },
    'public.product': { entity: 'product', id: ['id'], name: 'title', ignore: ['updated_at'] },
    'public.product_sales_channel': { entity: 'product-sales-channel', id: ['product_id', 'sales_channel_id'] },
    'public.provider_identity': { entity: 'provider-identity', id: ['id'], mask: ['provider_metadata'] },
    'public.sales_channel': { entity: 'sales-channel', id: ['id'], name: 'name', ignore: ['updated_at'] },
  });
  expect(stderr).toContain('JSON that is recorded as it is: mask what is secret in it:\n  public.price.raw_amount\n');
  for (const { statement = '' } of faults) await source.pool.query(statement);
  const reports = await checkMappingAt(readMapping(stdout), readSource(source.url));
  expect(reports.flatMap(({ missing }) => missing)).toEqual([]);
});

test('partitions by their root, other schemas, quoted names, and tables that cannot be recorded', async () => {
  const { file, stderr } = await init(`
    create table events (id bigint, at date, data jsonb, primary key (id, at)) partition by range (at);
    create table events_2026 partition of events for values from ('2026-01-01') to ('2027-01-01');
    create schema "Sales Dept";
    create table "Sales Dept"."Order Lines" (a int, b int, "we.ird token" text, "*" jsonb, primary key (b, a));
    create unlogged table fast (id int primary key);
    create table nokey (a int);
    create view seen as select 1 as id;
    create domain secret_text as text;
    create table typed (id bigint generated always as identity primary key, "API Key" secret_text, "UpdatedAt" timestamptz);`);
  expect(file.tables).toEqual({
    'public.events': { entity: 'event', id: ['id', 'at'] },
    'public.typed': { entity: 'typed', id: ['id'], mask: ['API Key'], ignore: ['UpdatedAt'] },
    'Sales Dept.Order Lines': { entity: 'order-line', id: ['b', 'a'], mask: ['we\\.ird token'] },
  });
  expect(file.tenant.value).toMatch(/^shop[0-9a-f]+$/);
  expect(stderr).toContain('the name of the database');
  expect(stderr).toMatch(/unlogged.*: public\.fast\n/);
  expect(stderr).toMatch(/no key.*: public\.nokey\n/);
});

test('wrong usage, and a source that is away', async () => {
  const url = new URL(server.url);
  expect(await annals(['mapping', 'init'])).toMatchObject({ code: 2, stdout: '' });
  expect(await annals(['mapping', 'init', '--from', url.href, '--tenant', 'Not One'])).toMatchObject({
    code: 2,
    stdout: '',
  });
  const empty = await annals(['mapping', 'init', '--from', (await createSourceDatabase(server)).url]);
  expect(empty).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('has no tables') });
  url.port = '1';
  const away = await annals(['mapping', 'init', '--from', url.href]);
  expect(away).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('the source cannot be reached') });
});

const people = `
  create table orders (id int primary key, status text, updated_by int);
  create table users (id int primary key, full_name text, updated_at timestamptz);`;

test('the people whose ids columns of writers contain: by a foreign key or the name of the table', async () => {
  const byName = await init(people, '--tenant', 'acme');
  expect(byName.file.people).toBe('user');
  expect(byName.stderr).toMatch(/^People: .*:\n {2}public\.users$/m);
  const byKey = await init(`
    ${people}
    create table staff (number int primary key, title text);
    alter table orders add foreign key (updated_by) references staff;`);
  expect(byKey.file.people).toBe('staff');
});

test('people are not guessed if there are several tables, or none of their columns is a name', async () => {
  const several = await init(`${people} create table admin_users (id int primary key, name text);`);
  expect(several.file).not.toHaveProperty('people');
  expect(several.stderr).toContain('public.admin_users: to use it, write "people": "admin-user"');
  expect(several.stderr).toContain('public.users: to use it, write "people": "user"');
  const unnamed = await init('create table users (id int primary key, email text)');
  expect(unnamed.file).not.toHaveProperty('people');
  expect(unnamed.stderr).toContain('public.users: to use it, give the table a "name" and write "people": "user"');
});
