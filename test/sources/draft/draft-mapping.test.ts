import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import type { ApplicationTable } from '../../../src/sources/draft/application-tables.ts';
import { draftMapping, linesOfDraft, textOfMapping } from '../../../src/sources/draft/draft-mapping.ts';
import { EntityNames } from '../../../src/sources/draft/name-guesses.ts';

/** A table whose columns are `name:type`, text by default; its first column is the key. */
function tableOf(name: string, columns: readonly string[], more: Partial<ApplicationTable> = {}): ApplicationTable {
  const categories: Record<string, string> = {
    text: 'S',
    int4: 'N',
    bool: 'B',
    timestamptz: 'D',
    jsonb: 'U',
    uuid: 'U',
  };
  const read = columns.map((column) => {
    const [, text = column, type = 'text'] = /^(.*?)(?::(\w+))?$/s.exec(column) ?? [];
    return { name: text, type, category: categories[type] ?? 'U', isGenerated: false };
  });
  return {
    oid: name,
    schema: 'public',
    name,
    isPartitioned: false,
    isUnlogged: false,
    extension: null,
    columns: read,
    keys: [{ isPrimary: true, columns: read.slice(0, 1).map((column) => column.name) }],
    foreignKeys: [],
    ...more,
  };
}

const draftOf = (name: string, ...columns: string[]) =>
  draftMapping([tableOf(name, ['id', ...columns])], 'acme').file.tables?.[`public.${name}`];

test.each([
  ['orders', 'order'],
  ['OrderLines', 'order-line'],
  ['APIKeys', 'api-key'],
  ['people', 'person'],
  ['categories', 'category'],
  ['movies', 'movie'],
  ['addresses', 'address'],
  ['address', 'address'],
  ['statuses', 'status'],
  ['cases', 'case'],
  ['warehouses', 'warehouse'],
  ['branches', 'branch'],
  ['caches', 'cache'],
  ['boxes', 'box'],
  ['sizes', 'size'],
  ['analysis', 'analysis'],
  ['news', 'news'],
  ['product_channels_channel', 'product-channels-channel'],
  ['schlüssel', 'schlüssel'],
  ['s', 's'],
])('rows of %s are the entity %s', (name, entity) => {
  expect(new EntityNames().assign({ schema: 'public', name })).toBe(entity);
});

test('an entity is of one table, and not of Annals itself', () => {
  const names = new EntityNames();
  const take = (name: string, schema = 'public') => names.assign({ schema, name });
  expect(['order', 'orders', 'Order'].map((name) => take(name))).toEqual(['order', 'orders', 'public-order']);
  expect([take('order', 'sales'), take('ORDER', 'sales')]).toEqual(['sales-order', 'sales-order-2']);
  expect([take('configuration'), take('agents'), take('annals_x'), take('*')]).toEqual([
    'public-configuration',
    'public-agent',
    'public-annals-x',
    '*',
  ]);
});

describe('what a column most likely is', () => {
  test.each([
    ['passwordHash', 'text'],
    ['encrypted_password', 'text'],
    ['token', 'text'],
    ['verificationToken', 'text'],
    ['api_key', 'text'],
    ['APIKey', 'text'],
    ['encrypted_key', 'text'],
    ['salt', 'text'],
    ['iban', 'text'],
    ['ssn', 'int4'],
    ['card', 'jsonb'],
    ['card_number', 'int4'],
    ['key_hash', 'text'],
    ['recovery_codes', 'jsonb'],
  ])('%s, %s, is masked', (name, type) => {
    expect(draftOf('thing', `${name}:${type}`)?.mask).toEqual([name]);
  });

  test.each([
    ['total_tokens', 'int4'],
    ['has_password', 'bool'],
    ['password_changed_at', 'timestamptz'],
    ['token_expires_at', 'timestamptz'],
    ['idempotency_key', 'text'],
    ['sort_key', 'text'],
    ['discard', 'text'],
    ['dashboard', 'text'],
    ['metadata', 'jsonb'],
    ['key', 'text'],
  ])('%s, %s, is not', (name, type) => {
    expect(draftOf('thing', `${name}:${type}`)?.mask).toBeUndefined();
  });

  test('in a table of secrets, columns without a telling name are masked too', () => {
    expect(draftOf('gift_cards', 'code', 'currency_code')?.mask).toEqual(['code']);
    expect(draftOf('provider_identity', 'provider_metadata:jsonb', 'provider')?.mask).toEqual(['provider_metadata']);
    expect(draftOf('price', 'raw_amount:jsonb')?.mask).toBeUndefined();
  });

  test.each(['updated_at', 'updatedAt', 'modified', 'date_modified', 'last_seen', 'lastLogin', 'last_login_at'])(
    '%s is ignored as a timestamp alone',
    (name) => {
      expect(draftOf('thing', `${name}:timestamptz`)?.ignore).toEqual([name]);
      expect(draftOf('thing', name)?.ignore).toBeUndefined();
    },
  );

  test.each(['deleted_at', 'created_at', 'used_at', 'password_changed_at', 'paid_at'])('%s is recorded', (name) => {
    expect(draftOf('thing', `${name}:timestamptz`)?.ignore).toBeUndefined();
  });

  test.each(['updated_by', 'updatedById', 'modified_by', 'last_edited_by_user_id', 'changed_by_name'])(
    '%s says who wrote a row last, which only the report says',
    (name) => {
      const draft = draftMapping([tableOf('thing', ['id', name])], 'acme');
      expect(draft.file.tables).toEqual({ 'public.thing': { entity: 'thing', id: ['id'] } });
      expect(linesOfDraft(draft, { tenantIsGuessed: false }).slice(1)).toEqual([
        'Says who wrote a row last: "actor" or "actorId", if every change sets it:',
        `  public.thing.${name}`,
      ]);
    },
  );

  test.each(['created_by', 'approved_by', 'updated_by_ip', 'sorted_by', 'updated_at'])('%s does not', (name) => {
    expect(draftMapping([tableOf('thing', ['id', name])], 'acme').writers).toEqual([]);
  });

  test('the best name counts, as text alone, and a title is not that of a person', () => {
    expect(draftOf('thing', 'code', 'title', 'label')?.name).toBe('title');
    expect(draftOf('thing', 'name:jsonb', 'code')?.name).toBe('code');
    expect(draftOf('customer', 'title', 'firstName')?.name).toBeUndefined();
    expect(draftOf('company', 'company_name', 'title')?.name).toBe('company_name');
  });
});

test.each([
  'migrations',
  '_prisma_migrations',
  '__EFMigrationsHistory',
  'mikro_orm_migrations',
  'strapi_migrations_internal',
  'job_record_buffer',
  'jobs',
  'outbox',
  'session',
  'user_sessions',
  'strapi_sessions',
  'directus_sessions',
  'search_index_item',
  'knex_migrations_lock',
  'cache',
])('%s is left out and listed', (name) => {
  const { file, leftOut } = draftMapping([tableOf(name, ['id'])], 'acme');
  expect(file.tables).toEqual({});
  expect([...leftOut.values()]).toEqual([[`public.${name}`]]);
});

test.each(['payment_session', 'job_title', 'block', 'clock', 'immigration'])('%s is not', (name) => {
  expect(draftMapping([tableOf(name, ['id'])], 'acme').leftOut.size).toBe(0);
});

test('what cannot be an id is listed with its reason', () => {
  const key = (...columns: string[]) => ({ keys: [{ isPrimary: false, columns }] });
  const { file, leftOut } = draftMapping(
    [
      tableOf('none', ['a'], { keys: [] }),
      tableOf('unique', ['a', 'b'], key('b')),
      tableOf('secret', ['token']),
      tableOf('parts', ['a'], { ...key('a'), isPartitioned: true }),
      tableOf('unlogged', ['a'], { isUnlogged: true }),
      tableOf('spatial_ref_sys', ['a'], { extension: 'postgis' }),
    ],
    'acme',
  );
  expect(file.tables).toEqual({ 'public.unique': { entity: 'unique', id: ['b'] } });
  expect([...leftOut.values()].flat()).toEqual([
    'public.none',
    'public.secret',
    'public.parts',
    'public.unlogged',
    'public.spatial_ref_sys',
  ]);
});

test('a foreign key is related in the order of the other id, and only where it has all of it', () => {
  const lines = tableOf('line', ['id', 'o', 't', 'code'], {
    foreignKeys: [
      { table: 'orders', columns: ['o', 't'], references: ['number', 'tenant'] },
      { table: 'product', columns: ['code'], references: ['sku'] },
    ],
  });
  const orders = tableOf('orders', ['tenant', 'number'], {
    keys: [{ isPrimary: true, columns: ['tenant', 'number'] }],
  });
  const { file, unrelated } = draftMapping([lines, orders, tableOf('product', ['id', 'sku'])], 'acme');
  expect(file.tables?.['public.line']?.related).toEqual([{ entity: 'order', id: ['t', 'o'] }]);
  expect(unrelated).toEqual(['public.line (code): product has another id']);
});

test('a column that is named as an id is related where the types agree', () => {
  const tables = [tableOf('customers', ['id:uuid']), tableOf('order', ['id', 'customerId:uuid', 'customer_id:text'])];
  const { file, relatedByName } = draftMapping(tables, 'acme');
  expect(file.tables?.['public.order']?.related).toEqual([{ entity: 'customer', id: ['customerId'] }]);
  expect(relatedByName).toEqual(['public.order.customerId → customer']);
});

const anyName = fc.oneof(
  fc.constantFrom('a.b', '*', '\\', 'a\\*', '__proto__', 'constructor', 'token', 'updated_at', 'name', 'x_id'),
  fc.string({ minLength: 1, maxLength: 10, unit: 'grapheme' }),
);

test('whatever the names of tables and columns are, the mapping is right', () => {
  const anyTable = fc.record({
    schema: anyName,
    name: anyName,
    columns: fc.uniqueArray(anyName, { minLength: 1, maxLength: 6 }),
    types: fc.array(fc.constantFrom('text', 'jsonb', 'timestamptz', 'int4'), { minLength: 6, maxLength: 6 }),
  });
  fc.assert(
    fc.property(fc.array(anyTable, { maxLength: 6 }), (made) => {
      const tables = made.map(({ schema, name, columns, types }, place) => {
        const table = tableOf(name, columns.slice(0, 1), { schema, oid: String(place) });
        const typed = columns.flatMap((column, index) =>
          tableOf('x', [`:${types[index]}`]).columns.map((of) => ({ ...of, name: column })),
        );
        const foreignKeys = [{ table: String(place % 2), columns: columns.slice(-1), references: columns.slice(0, 1) }];
        return { ...table, columns: typed, foreignKeys, keys: [{ isPrimary: true, columns: columns.slice(0, 1) }] };
      });
      const draft = draftMapping(tables, 'acme');
      const text = textOfMapping(draft.file);
      expect(JSON.parse(text)).toEqual(draft.file);
      const mapping = readMapping(text);
      expect(mapping.tables.size + [...draft.leftOut.values()].flat().length).toBe(tables.length);
      expect(linesOfDraft(draft, { tenantIsGuessed: true }).length).toBeGreaterThan(0);
    }),
  );
});
