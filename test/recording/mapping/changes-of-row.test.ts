import { describe, expect, test } from 'vitest';
import { changesOfRow, documentOfRow } from '../../../src/recording/mapping/changes-of-row.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { mapped, paths, row, type Values } from './mapped-rows.ts';

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
    expect(change).toMatchObject({ change: { paths: '{"card":{"before":"********","after":"********"}}' } });
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
    expect(mapped(table, { type: 'create', after: { id: 7, customer: '', tags: ['', 'a'] } })).toMatchObject([
      { change: { related: [{ entity: 'tag', entityId: 'a' }] } },
    ]);
    const [long] = mapped(table, { type: 'create', after: { id: 7, title: '😀'.repeat(1001) } });
    expect(long).toMatchObject({ change: { name: '😀'.repeat(1000) } });
  });

  describe('by who', () => {
    const table = {
      actor: 'who',
      actorId: 'who_id',
      onBehalfOf: { name: 'client', id: 'client_id' },
      correlationId: 'request',
    };
    const of = (values: Values, rest: Omit<Parameters<typeof mapped>[1], 'after'> = {}) => {
      const [change] = mapped(table, { type: 'create', after: { id: 7, ...values }, ...rest });
      if (change?.kind !== 'change') throw new Error('no change');
      const { actor, actorId, onBehalfOf, correlationId, derived } = change.change;
      const members = { hasActor: change.hasActor, actor, actorId, onBehalfOf, correlationId, derived };
      return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
    };

    test('has all parts of its columns', () => {
      expect(of({ who: 'Jane', who_id: 17, client: 'Acme', client_id: 'c-1', request: 'r' })).toEqual({
        hasActor: true,
        actor: 'Jane',
        actorId: '17',
        onBehalfOf: { name: 'Acme', id: 'c-1' },
        correlationId: 'r',
      });
      expect(of({ who_id: 17 })).toEqual({ hasActor: true, actor: 'unknown', actorId: '17' });
      expect(of({ client_id: 'c-1' })).toEqual({ hasActor: true, actor: 'unknown', onBehalfOf: { id: 'c-1' } });
      expect(of({ request: 'r' })).toEqual({ hasActor: false, actor: 'unknown', correlationId: 'r' });
    });

    test('never joins a name of one source to an id of another', () => {
      const values = { who: 'Jane', who_id: 17, client: 'Acme' };
      expect(of(values, { who: { actor: 'John' } })).toEqual({ hasActor: true, actor: 'John' });
      expect(of(values, { who: { actorId: '18' } })).toEqual({ hasActor: true, actor: 'unknown', actorId: '18' });
    });

    test("takes the transaction's correlation, else the column's, else the derived one", () => {
      const all = { correlationId: 'said', derivedCorrelationId: 'derived' };
      expect(of({ request: 'column' }, all)).toMatchObject({ correlationId: 'said' });
      const column = of({ request: 'column' }, { derivedCorrelationId: 'derived' });
      expect(column).toEqual({ hasActor: false, actor: 'unknown', correlationId: 'column' });
      expect(of({}, { derivedCorrelationId: 'derived' })).toMatchObject({
        correlationId: 'derived',
        derived: { correlationId: true },
      });
    });

    test('drops what an entry cannot show, and truncates names alone', () => {
      const x = (length: number) => 'x'.repeat(length);
      expect(of({ who: x(1001), who_id: x(1000), request: x(200) })).toEqual({
        hasActor: true,
        actor: x(1000),
        actorId: x(1000),
        correlationId: x(200),
      });
      for (const invalid of [x(1001), '', '\0', '\ud800', null]) {
        expect(of({ who_id: invalid, client_id: invalid, request: invalid })).toEqual({
          hasActor: false,
          actor: 'unknown',
        });
      }
      expect(of({ request: x(201) })).toEqual({ hasActor: false, actor: 'unknown' });
    });

    test('has the same value in all rows where the mapping gives one', () => {
      const values = { actorId: { value: 'billing' }, correlationId: { value: 'run' } };
      expect(mapped(values, { type: 'create', after: { id: 7 } })).toMatchObject([
        { hasActor: true, change: { actor: 'unknown', actorId: 'billing', correlationId: 'run' } },
      ]);
    });

    test('is found under a former name of its columns', () => {
      const renamed = { ...table, former: { who_id: 'user_id', request: 'trace' } };
      expect(mapped(renamed, { type: 'create', after: { id: 7, user_id: 'u', trace: 't' } })).toMatchObject([
        { change: { actorId: 'u', correlationId: 't' } },
      ]);
      expect(mapped(renamed, { type: 'create', after: { id: 7, who_id: 'u', request: 't' } })).toMatchObject([
        { change: { actorId: 'u', correlationId: 't' } },
      ]);
    });
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
      '{"version":1,"tenant":{"value":"acme"},"tables":{"public.orders":{"entity":"order","mask":["card"],"ignore":["u"],' +
        '"actorId":"id","correlationId":"id"}}}',
    );
    const change = {
      table: 'public.orders',
      type: 'create',
      at: 1,
      identity: Buffer.alloc(16),
      primaryKey: ['id'],
    } as const;
    const after = row({ id: 7, card: '4111', u: 1 });
    const document = documentOfRow(mapping, { ...change, after });
    expect(document).toMatchObject({
      kind: 'document',
      tenant: 'acme',
      document: '{"id":7,"card":"********"}',
      change: { actor: 'system', type: 'create', entity: 'order', entityId: '7' },
    });
    for (const member of ['actorId', 'correlationId']) expect(document).not.toHaveProperty(`change.${member}`);
  });
});
