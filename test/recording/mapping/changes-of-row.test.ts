import { describe, expect, test } from 'vitest';
import { changesOfRow, documentOfRow } from '../../../src/recording/mapping/changes-of-row.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { readRejectedRow } from '../../../src/recording/mapping/rejected-row.ts';
import type { MappedChange, Row, RowChange } from '../../../src/recording/mapping/row-change.ts';

type Values = Record<string, unknown>;

/** A value of undefined is one that the source does not give. */
function row(values: Values): Row {
  return new Map(
    Object.entries(values).map(([column, value]) => [column, value === undefined ? undefined : JSON.stringify(value)]),
  );
}

function mapped(
  table: object,
  change: { before?: Values; after?: Values } & Partial<Omit<RowChange, 'before' | 'after'>>,
  rest = {},
) {
  const mapping = readMapping(
    JSON.stringify({
      version: 1,
      tenant: { value: 'acme' },
      tables: { 'public.orders': { entity: 'order', ...table } },
      ...rest,
    }),
  );
  const { before, after, ...others } = change;
  return changesOfRow(
    mapping,
    {
      table: 'public.orders',
      type: 'update',
      at: 1,
      identity: Buffer.alloc(16, 1),
      primaryKey: ['id'],
      before: before && row(before),
      after: after && row(after),
      ...others,
    },
    { actor: 'unknown' },
  );
}

function paths(changes: MappedChange[]): unknown[] {
  return changes.map((change) => (change.kind === 'change' ? JSON.parse(change.change.paths) : change));
}

describe('a row', () => {
  test('that is inserted, updated and deleted is a create, an update and a delete', () => {
    expect(mapped({}, { type: 'create', after: { id: 7, a: 'x' } })).toEqual([
      {
        kind: 'change',
        tenant: 'acme',
        hasActor: false,
        change: {
          identity: Buffer.alloc(16, 1),
          at: 1,
          type: 'create',
          entity: 'order',
          entityId: '7',
          actor: 'unknown',
          related: [],
          paths: '{"id":{"after":7},"a":{"after":"x"}}',
        },
      },
    ]);
    expect(paths(mapped({}, { before: { id: 7, a: 1 }, after: { id: 7, a: 2 } }))).toEqual([
      { a: { before: 1, after: 2 } },
    ]);
    expect(paths(mapped({}, { type: 'delete', before: { id: 7, a: 1 } }))).toEqual([
      { id: { before: 7 }, a: { before: 1 } },
    ]);
  });

  test('of a table that the mapping does not name is not recorded', () => {
    expect(mapped({}, { table: 'public.other', type: 'create', after: { id: 7 } })).toEqual([]);
  });

  test('whose ignored columns alone differ is unchanged', () => {
    const table = { ignore: ['updated_at', 'doc.etag'] };
    const before = { id: 7, updated_at: 1, doc: { etag: 1, x: 1 } };
    expect(mapped(table, { before, after: { id: 7, updated_at: 2, doc: { etag: 2, x: 1 } } })).toEqual([
      { kind: 'unchanged', tenant: 'acme' },
    ]);
  });

  test('shows a mask for what is masked, in its context too', () => {
    const table = { mask: ['card', 'token'], context: { card: 'card', ip: 'ip' } };
    const [change] = mapped(table, {
      before: { id: 7, card: '4111', ip: '::1' },
      after: { id: 7, card: '4222', ip: '::1' },
      context: '{"token":"secret","why":"test"}',
    });
    expect(change).toMatchObject({
      change: { paths: '{"card":{"before":"********","after":"********"}}' },
    });
    const context = change?.kind === 'change' ? change.change.context : undefined;
    expect(JSON.parse(context ?? '')).toEqual({ card: '********', ip: '::1', token: '********', why: 'test' });
  });

  test('has its id from several columns, with escapes', () => {
    const [change] = mapped({ id: ['a', 'b'] }, { type: 'create', after: { a: 'x,y', b: 'c\\d' } });
    expect(change).toMatchObject({ change: { entityId: 'x\\,y,c\\\\d' } });
    expect(mapped({ id: ['a'] }, { type: 'create', after: { a: 'x,y' } })).toMatchObject([
      { change: { entityId: 'x,y' } },
    ]);
  });

  test('has name, actor, schema version, related documents and context from its columns', () => {
    const table = {
      name: 'title',
      actor: 'who',
      schemaVersion: { column: 'v' },
      context: { ip: 'ip' },
      related: [
        { entity: 'customer', id: ['customer'] },
        { entity: 'tag', id: ['tags'] },
        { entity: 'line', id: ['customer', 'tags'] },
      ],
    };
    const after = { id: 7, title: 'Chair', who: 'Jane', v: 3, ip: '::1', customer: 5, tags: ['a', null, 'b'] };
    expect(mapped(table, { type: 'create', after })).toMatchObject([
      {
        hasActor: true,
        change: {
          name: 'Chair',
          actor: 'Jane',
          schemaVersion: '3',
          context: '{"ip":"::1"}',
          related: [
            { entity: 'customer', entityId: '5' },
            { entity: 'tag', entityId: 'a' },
            { entity: 'tag', entityId: 'b' },
            { entity: 'line', entityId: '5,a' },
            { entity: 'line', entityId: '5,b' },
          ],
        },
      },
    ]);
    expect(
      mapped(table, { type: 'create', after: { id: 7, title: '', who: null, customer: null, tags: null } }),
    ).toMatchObject([{ hasActor: false, change: { actor: 'unknown', related: [] } }]);
    const [long] = mapped(table, { type: 'create', after: { id: 7, title: '😀'.repeat(1001) } });
    expect(long).toMatchObject({ change: { name: '😀'.repeat(1000) } });
  });

  test("takes the transaction's actor before the column", () => {
    expect(mapped({ actor: 'who' }, { type: 'create', after: { id: 7, who: 'Jane' }, actor: 'John' })).toMatchObject([
      { hasActor: true, change: { actor: 'John' } },
    ]);
  });

  test('has its tenant from a column or the schema, translated where the mapping says so', () => {
    const tenant = (rest: object, after: Values) =>
      mapped({}, { type: 'create', after }, rest).map((change) => change.tenant);
    expect(tenant({ tenant: { column: 'org' }, tenants: { 17: 'globex' } }, { id: 1, org: 17 })).toEqual(['globex']);
    expect(tenant({ tenant: { column: 'org' } }, { id: 1, org: 'initech' })).toEqual(['initech']);
    expect(tenant({ tenant: { schema: true } }, { id: 1 })).toEqual(['public']);
    expect(tenant({ tenant: { schema: true }, tenants: { public: 'acme' } }, { id: 1 })).toEqual(['acme']);
    expect(tenant({ tenant: undefined }, { id: 1 })).toEqual([undefined]);
  });

  test('that does not give the column of its tenant is of the default tenant, and one with null is of none', () => {
    const mapping = readMapping(
      '{"version":1,"tenant":{"column":"org"},"tables":{"public.orders":{"entity":"order","id":["id"]}}}',
    );
    const of = (values: Values) =>
      changesOfRow(
        mapping,
        { table: 'public.orders', type: 'delete', at: 1, identity: Buffer.alloc(16), before: row(values) },
        { actor: 'x', tenant: 'path' },
      );
    expect(of({ id: 1 })).toMatchObject([{ kind: 'change', tenant: 'path' }]);
    expect(of({ id: 1, org: 'own' })).toMatchObject([{ kind: 'change', tenant: 'own' }]);
    expect(of({ id: 1, org: null })).toMatchObject([{ kind: 'rejected' }]);
  });

  test('of a text column that holds JSON is walked; what is no JSON stays text', () => {
    const after = { id: 7, payload: '{"b":1.10}', other: '{"b":1}' };
    expect(paths(mapped({ json: ['payload'] }, { type: 'create', after }))).toEqual([
      { id: { after: 7 }, 'payload.b': { after: 1.1 }, other: { after: '{"b":1}' } },
    ]);
    expect(paths(mapped({ json: ['payload'] }, { type: 'create', after: { id: 7, payload: '{' } }))).toEqual([
      { id: { after: 7 }, payload: { after: '{' } },
    ]);
  });

  test('in a snapshot is a document with its masks, and the change that creates it', () => {
    const mapping = readMapping(
      '{"version":1,"tenant":{"value":"acme"},"tables":{"public.orders":{"entity":"order","mask":["card"],"ignore":["u"]}}}',
    );
    const change = {
      table: 'public.orders',
      type: 'create',
      at: 1,
      identity: Buffer.alloc(16),
      primaryKey: ['id'],
    } as const;
    const after = row({ id: 7, card: '4111', u: 1 });
    expect(documentOfRow(mapping, { ...change, after }, { actor: 'system' })).toMatchObject({
      kind: 'document',
      tenant: 'acme',
      entity: 'order',
      entityId: '7',
      document: '{"id":7,"card":"********"}',
      change: { actor: 'system', type: 'create' },
    });
  });
});

describe('an update', () => {
  test('of the id is a delete of the old and a create of the new, each related to the other', () => {
    const changes = mapped(
      { related: [{ entity: 'c', id: ['c'] }] },
      { before: { id: 7, c: 1, a: 1 }, after: { id: 8, c: 1, a: 2 } },
    );
    expect(changes).toMatchObject([
      {
        change: {
          type: 'delete',
          entityId: '7',
          related: [
            { entity: 'order', entityId: '8' },
            { entity: 'c', entityId: '1' },
          ],
        },
      },
      {
        change: {
          type: 'create',
          entityId: '8',
          related: [
            { entity: 'order', entityId: '7' },
            { entity: 'c', entityId: '1' },
          ],
        },
      },
    ]);
    expect(paths(changes)).toEqual([
      { id: { before: 7 }, c: { before: 1 }, a: { before: 1 } },
      { id: { after: 8 }, c: { after: 1 }, a: { after: 2 } },
    ]);
    const [one, other] = changes.map((change) =>
      change.kind === 'change' ? Buffer.from(change.change.identity) : undefined,
    );
    expect(one).not.toEqual(other);
  });

  test('of the id with the old key alone is the same', () => {
    expect(mapped({}, { before: { id: 7 }, after: { id: 8, a: 2 } })).toMatchObject([
      { tenant: 'acme', change: { type: 'delete', entityId: '7', paths: '{"id":{"before":7}}' } },
      { tenant: 'acme', change: { type: 'create', entityId: '8' } },
    ]);
    expect(mapped({}, { before: { id: 7 }, after: { id: 8, org: 'x' } }, { tenant: { column: 'org' } })).toMatchObject([
      { tenant: 'x', change: { type: 'delete' } },
      { tenant: 'x', change: { type: 'create' } },
    ]);
  });

  test('of the id to or from one that can never be recorded is the other half, and the rejected half is kept as its own row', () => {
    const long = 'x'.repeat(1001);
    const table = { mask: ['card'] };
    const [gone, refused] = mapped(table, { before: { id: 'a', card: '4111' }, after: { id: long, card: '4112' } });
    expect(gone).toMatchObject({ kind: 'change', change: { type: 'delete', entityId: 'a', related: [] } });
    expect(refused).toMatchObject({ kind: 'rejected', tenant: 'acme', reason: 'its id has more than 1000 characters' });
    const kept = readRejectedRow(refused?.kind === 'rejected' ? refused.content : '');
    expect(kept).toMatchObject({ type: 'create', before: undefined, after: row({ id: long, card: '********' }) });
    // A mapping with another id can still record it. It is another change than the delete.
    expect(kept?.identity).not.toEqual(gone?.kind === 'change' ? gone.change.identity : undefined);

    const [old, fresh] = mapped(table, { before: { id: long, card: '4111' }, after: { id: 'b', card: '4111' } });
    expect(old).toMatchObject({ kind: 'rejected', reason: 'its id has more than 1000 characters' });
    expect(readRejectedRow(old?.kind === 'rejected' ? old.content : '')).toMatchObject({ type: 'delete' });
    expect(fresh).toMatchObject({ kind: 'change', change: { type: 'create', entityId: 'b', related: [] } });
    expect(mapped({}, { before: { id: long, a: 1 }, after: { id: long, a: 2 } })).toMatchObject([{ kind: 'rejected' }]);
    expect(mapped({}, { before: { id: 'a' }, after: { id: null } })).toMatchObject([
      { change: { type: 'delete', entityId: 'a' } },
      { kind: 'rejected', tenant: 'acme', reason: 'the column id of its id is null' },
    ]);
  });

  test('of the tenant to none is a delete there, and the create is rejected', () => {
    expect(
      mapped({}, { before: { id: 7, org: 'x' }, after: { id: 7, org: null } }, { tenant: { column: 'org' } }),
    ).toMatchObject([
      { kind: 'change', tenant: 'x', change: { type: 'delete', entityId: '7' } },
      { kind: 'rejected', tenant: undefined, reason: 'the column org of its tenant is null' },
    ]);
  });

  test('of the tenant is a delete there and a create here, without that relation', () => {
    expect(
      mapped({}, { before: { id: 7, org: 'x' }, after: { id: 7, org: 'y' } }, { tenant: { column: 'org' } }),
    ).toMatchObject([
      { tenant: 'x', change: { type: 'delete', related: [] } },
      { tenant: 'y', change: { type: 'create', related: [] } },
    ]);
  });

  test('without before, or with its key alone, has after only', () => {
    const expected = [{ id: { after: 7 }, a: { after: 2 } }];
    expect(paths(mapped({}, { after: { id: 7, a: 2 } }))).toEqual(expected);
    expect(paths(mapped({}, { before: { id: 7 }, after: { id: 7, a: 2 } }))).toEqual(expected);
    expect(paths(mapped({ ignore: ['a'] }, { before: { id: 7 }, after: { id: 7, a: 2 } }))).toMatchObject([
      { kind: 'unchanged' },
    ]);
  });

  test('has what the source did not send from before, and leaves out what neither side gives', () => {
    expect(paths(mapped({}, { before: { id: 7, big: 'x', a: 1 }, after: { id: 7, big: undefined, a: 2 } }))).toEqual([
      { a: { before: 1, after: 2 } },
    ]);
    expect(
      paths(mapped({}, { before: { id: 7, big: undefined, a: 1 }, after: { id: 7, big: undefined, a: 2 } })),
    ).toEqual([{ a: { before: 1, after: 2 } }]);
  });

  test('without before that lacks values has each new value as one, and is not marked as whole', () => {
    const changes = mapped(
      { mask: ['card'] },
      { after: { id: 7, big: undefined, doc: { a: { b: 1 } }, card: 5, 'x.y': 1 } },
    );
    expect(paths(changes)).toEqual([
      { id: { after: 7 }, doc: { after: { a: { b: 1 } } }, card: { after: '********' }, 'x\\.y': { after: 1 } },
    ]);
    expect(changes[0]).not.toHaveProperty('change.marks');
  });
});

describe('a row that can never be recorded', () => {
  test('is rejected with the reason, and without its masked and ignored values', () => {
    const [rejected] = mapped(
      { mask: ['card'], ignore: ['u'] },
      { type: 'create', after: { id: null, card: '4111', u: '4112', a: 1 } },
    );
    expect(rejected).toMatchObject({ kind: 'rejected', tenant: 'acme', reason: 'the column id of its id is null' });
    expect(JSON.stringify(rejected)).not.toContain('411');
  });

  test('says what the source does not give, or what the mapping does not name', () => {
    const reasons = (...of: Parameters<typeof mapped>) =>
      mapped(...of).map((change) => (change.kind === 'rejected' ? change.reason : change));
    expect(reasons({}, { type: 'delete' })).toEqual(['the source does not give the old row']);
    expect(reasons({}, { type: 'create', after: { id: '' } })).toEqual(['its id is empty']);
    expect(reasons({}, { type: 'create', after: { id: 'x'.repeat(1001) } })).toEqual([
      'its id has more than 1000 characters',
    ]);
    expect(reasons({}, { type: 'create', after: { a: 1 }, primaryKey: undefined })).toEqual([
      'no primary key of public.orders is known: name the columns of its "id" in the mapping',
    ]);
    expect(reasons({}, { type: 'delete', before: { id: 1 } }, { tenant: { column: 'org' } })).toEqual([
      'the source does not give its column org',
    ]);
    expect(mapped({}, { type: 'create', after: { id: 'x'.repeat(1000) } })).toMatchObject([{ kind: 'change' }]);
  });

  test('is one with JSON that nests deeper than a document may', () => {
    const mapping = readMapping('{"version":1,"tables":{"public.orders":{"entity":"order"}}}');
    const change = (levels: number): RowChange => ({
      table: 'public.orders',
      type: 'create',
      at: 1,
      identity: Buffer.alloc(16),
      primaryKey: ['id'],
      after: new Map([
        ['id', '7'],
        ['deep', `${'['.repeat(levels)}${']'.repeat(levels)}`],
      ]),
    });
    expect(changesOfRow(mapping, change(9_999), { actor: 'unknown' })).toMatchObject([{ kind: 'change' }]);
    expect(changesOfRow(mapping, change(10_000), { actor: 'unknown' })).toMatchObject([
      {
        kind: 'rejected',
        reason: expect.stringContaining('nested too deep'),
        content: expect.not.stringContaining('[['),
      },
    ]);
  });

  test('can be read back and mapped again', () => {
    const table = { mask: ['card'] };
    const change = {
      type: 'update',
      before: { id: null, a: 1 },
      after: { id: null, a: 2.5 },
      context: '{"ip":"x"}',
      actor: 'Jane',
    } as const;
    const [rejected] = mapped(table, change);
    const again = readRejectedRow(rejected?.kind === 'rejected' ? rejected.content : '');
    expect(again).toEqual({
      table: 'public.orders',
      type: 'update',
      at: 1,
      identity: Buffer.alloc(16, 1),
      before: row({ id: null, a: 1 }),
      after: row({ id: null, a: 2.5 }),
      primaryKey: ['id'],
      actor: 'Jane',
      context: '{"ip":"x"}',
    });
  });
});
