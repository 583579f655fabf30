import { describe, expect, test } from 'vitest';
import { MappingError, readMapping } from '../../../src/recording/mapping/read-mapping.ts';

function faultsOf(file: unknown): string[] {
  return faultsOfText(JSON.stringify(file));
}

function faultsOfText(text: string): string[] {
  try {
    readMapping(text);
    return [];
  } catch (error) {
    if (!(error instanceof MappingError)) throw error;
    return error.faults.map(({ path, message }) => `${path.join(' → ')}: ${message}`);
  }
}

describe('a mapping', () => {
  test('in full is read in full', () => {
    const mapping = readMapping(
      JSON.stringify({
        version: 1,
        tenant: { column: 'org' },
        tenants: { 17: 'acme' },
        sources: ['shop'],
        tables: {
          'public.orders': {
            entity: 'order',
            id: ['a', 'b'],
            name: 'title',
            actor: 'changed_by',
            actorId: 'changed_by_id',
            onBehalfOf: { name: 'customer_name', id: { value: 'c-1' } },
            correlationId: 'request',
            transactionActor: { actor: 'who', actorId: 'who_id', onBehalfOf: { id: 'for_id' } },
            schemaVersion: { value: '3' },
            related: [{ entity: 'customer', id: ['customer_id'] }],
            ignore: ['updated_at', 'doc.etag'],
            mask: ['card', 'address.phone'],
            json: ['payload'],
            context: { ip: 'client_ip' },
            truncate: 'ignore',
            snapshot: false,
          },
        },
        entities: { order: { ignore: ['a.b'], mask: ['card.*'] } },
      }),
    );
    expect(mapping.tenant).toEqual({ kind: 'column', column: 'org' });
    expect(mapping.tenants).toEqual(new Map([['17', 'acme']]));
    expect(mapping.sources).toEqual(new Set(['shop']));
    expect(mapping.tables.get('public.orders')).toEqual({
      table: 'public.orders',
      entity: 'order',
      id: ['a', 'b'],
      former: { names: new Map(), dropped: new Set() },
      name: 'title',
      who: new Map<string, object>([
        ['actor', { column: 'changed_by' }],
        ['actorId', { column: 'changed_by_id' }],
        ['onBehalfOf.name', { column: 'customer_name' }],
        ['onBehalfOf.id', { value: 'c-1' }],
      ]),
      transactionActor: new Map([
        ['actor', { column: 'who' }],
        ['actorId', { column: 'who_id' }],
        ['onBehalfOf.id', { column: 'for_id' }],
      ]),
      correlationId: { column: 'request' },
      schemaVersion: { value: '3' },
      related: [{ entity: 'customer', id: ['customer_id'] }],
      rules: {
        ignore: [
          { text: 'updated_at', keys: ['updated_at'] },
          { text: 'doc.etag', keys: ['doc', 'etag'] },
          { text: 'a.b', keys: ['a', 'b'] },
        ],
        mask: [
          { text: 'card', keys: ['card'] },
          { text: 'address.phone', keys: ['address', 'phone'] },
          { text: 'card.*', keys: ['card', null] },
        ],
      },
      own: {
        ignore: [
          { text: 'updated_at', keys: ['updated_at'] },
          { text: 'doc.etag', keys: ['doc', 'etag'] },
        ],
        mask: [
          { text: 'card', keys: ['card'] },
          { text: 'address.phone', keys: ['address', 'phone'] },
        ],
      },
      json: new Set(['payload']),
      context: new Map([['ip', 'client_ip']]),
      truncate: 'ignore',
      snapshot: false,
    });
  });

  test('with people reads their entity, which needs a table with a name', () => {
    const mappingOf = (table: object) => ({ version: 1, people: 'user', tables: { 'public.users': table } });
    expect(readMapping(JSON.stringify(mappingOf({ entity: 'user', name: 'full_name' }))).people).toBe('user');
    const fault = 'people: must be the entity of a table that has a "name"';
    expect(faultsOf(mappingOf({ entity: 'user' }))).toEqual([fault]);
    expect(faultsOf(mappingOf({ entity: 'staff', name: 'full_name' }))).toEqual([fault]);
    expect(faultsOf({ version: 1, people: 'user' })).toEqual([fault]);
  });

  test('with the least of a table records deletes for a TRUNCATE, and is in snapshots', () => {
    const { tables, tenant, sources } = readMapping('{"version":1,"tables":{"public.orders":{"entity":"order"}}}');
    expect(tables.get('public.orders')).toMatchObject({
      id: undefined,
      truncate: 'deletes',
      snapshot: true,
      related: [],
    });
    expect([tenant, sources]).toEqual([undefined, undefined]);
  });

  test('names every fault at once, each with its place; an unknown key is a fault', () => {
    expect(
      faultsOf({
        version: 2,
        tenant: { colum: 'org' },
        tables: { 'public.orders': { mask: 'card', snapshots: true }, 'public.lines': { entity: '' } },
        rules: {},
      }).sort(),
    ).toEqual([
      'rules: is not a key that this object can have',
      'tables → public.lines → entity: must not have fewer than 1 characters',
      'tables → public.orders → mask: must be array',
      'tables → public.orders → snapshots: is not a key that this object can have',
      'tables → public.orders: must have required properties entity',
      'tenant → colum: is not a key that this object can have',
      'version: must be 1',
    ]);
  });

  test('says what its content has wrong beyond the shape', () => {
    expect(
      faultsOf({
        version: 1,
        tenant: { value: 'Acme' },
        tenants: { 17: 'a b' },
        tables: {
          orders: { entity: 'order' },
          'public.lines': { entity: 'line', id: ['a', 'b', 'a'], mask: ['a\\b'] },
        },
      }),
    ).toEqual([
      'tenants → 17: is no name of a tenant: lower-case letters and digits, a letter first',
      'tenant → value: is no name of a tenant: lower-case letters and digits, a letter first',
      'tables → orders: must be named with its schema or database: "public.orders"',
      'tables → public.lines → id → 2: is there twice',
      'tables → public.lines → mask → 0: has a backslash that is not before ".", "*" or "\\"',
    ]);
  });

  test('does not mask what entries show beside their paths', () => {
    const table = {
      entity: 'order',
      id: ['id'],
      name: 'title',
      actor: 'who',
      actorId: 'who_id',
      onBehalfOf: { name: 'client', id: 'client_id' },
      correlationId: 'request',
      transactionActor: { actor: 'who', actorId: 'by' },
      related: [{ entity: 'c', id: ['customer'] }],
    };
    const masks = (mask: string[], entities = {}) =>
      faultsOf({ version: 1, tenant: { column: 'org' }, tables: { 'public.orders': { ...table, mask } }, entities });
    expect(masks(['card', 'total.title'])).toEqual([]);
    for (const column of [
      'id',
      'title',
      'who',
      'who_id',
      'client',
      'client_id',
      'request',
      'by',
      'customer',
      'org',
      'title.de',
    ]) {
      expect(masks(['card', column])).toEqual([
        expect.stringMatching(/^tables → public.orders → mask → 1: cannot mask the column/),
      ]);
    }
    expect(masks(['*'])).toHaveLength(10);
    expect(masks([], { order: { mask: ['title'] } })).toEqual([
      'entities → order → mask → 0: cannot mask the column title of public.orders: entries show it as the name',
    ]);
  });

  test('says who by columns and values alone, and only by what an entry can show', () => {
    const table = (members: object) =>
      faultsOf({ version: 1, tables: { 'public.orders': { entity: 'order', ...members } } });
    const x = (length: number) => 'x'.repeat(length);
    expect(table({ actorId: { value: x(1000) }, correlationId: { value: x(200) } })).toEqual([]);
    expect(table({ transactionActor: 'who', onBehalfOf: { id: 'c' } })).toEqual([]);
    const faults: [object, ...string[]][] = [
      [{ actorId: '' }, 'actorId: must not have fewer than 1 characters'],
      [{ actorId: 7 }, 'actorId: must be string or object'],
      [{ actorId: { value: '' } }, 'actorId → value: must not have fewer than 1 characters'],
      [{ actorId: { value: x(1001) } }, 'actorId → value: must not have more than 1000 characters'],
      [{ actorId: { value: 'a', also: 'b' } }, 'actorId → also: is not a key that this object can have'],
      [{ onBehalfOf: 'client' }, 'onBehalfOf: must be object'],
      [{ onBehalfOf: {} }, 'onBehalfOf: must not have fewer than 1 properties'],
      [{ onBehalfOf: { names: 'client' } }, 'onBehalfOf → names: is not a key that this object can have'],
      [{ correlationId: { value: x(201) } }, 'correlationId → value: must not have more than 200 characters'],
      [{ transactionActor: {} }, 'transactionActor: must not have fewer than 1 properties'],
      [{ transactionActor: { actor: { value: 'Jane' } } }, 'transactionActor → actor: must be string'],
      [{ transactionActor: { request: 'r' } }, 'transactionActor → request: is not a key that this object can have'],
      [
        { transactionActor: { onBehalfOf: {} } },
        'transactionActor → onBehalfOf: must not have fewer than 1 properties',
      ],
    ];
    for (const [members, ...messages] of faults) {
      expect(table(members)).toEqual(messages.map((message) => `tables → public.orders → ${message}`));
    }
    expect(table({ actorId: { value: 'a\0' }, onBehalfOf: { id: { value: '\ud800' } } })).toEqual([
      'tables → public.orders → actorId → value: has a NUL character',
      'tables → public.orders → onBehalfOf → id → value: has a lone surrogate',
    ]);
  });

  test('gives an entity to one table where a TRUNCATE or a snapshot of it deletes documents', () => {
    const tables = (rest: object, tenant: object = { value: 'acme' }) =>
      faultsOf({
        version: 1,
        tenant,
        tables: { 'one.orders': { entity: 'order' }, 'two.orders': { entity: 'order', ...rest } },
      });
    expect(tables({})).toEqual([
      'tables → two.orders → entity: is the entity of one.orders too: give one of them "truncate": "ignore" and "snapshot": false',
    ]);
    expect(tables({ truncate: 'ignore' })).toHaveLength(1);
    expect(tables({ truncate: 'ignore', snapshot: false })).toEqual([]);
    expect(tables({}, { schema: true })).toEqual([]);
  });

  test('that names a key twice in one object is refused: the rules of the first would be lost', () => {
    const twice =
      '{"version":1,"tables":{"a.b":{"entity":"x","mask":["card"]},"a.c":{"entity":"y"},"a.b":{"entity":"x"}}}';
    expect(faultsOfText(twice)).toEqual([': has the key a.b twice in one object']);
  });

  test('that is no JSON is refused with the position; a byte order mark is taken', () => {
    expect(faultsOfText('{"version":1')).toEqual([expect.stringContaining('at character 13')]);
    expect(faultsOfText('\uFEFF{"version":1}')).toEqual([]);
  });
});
