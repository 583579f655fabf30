import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../../src/core/json/parse.ts';
import { changeOfSnapshot } from '../../../../src/recording/mapping/history-changes.ts';
import { readMapping } from '../../../../src/recording/mapping/read-mapping.ts';
import { changesOfEvent } from '../../../../src/sources/recorder/debezium/changes-of-event.ts';
import { eventHeaders, readDebeziumEvent } from '../../../../src/sources/recorder/debezium/read-event.ts';
import { changeOf, from, identityOf, mapping, resultOf, sample } from './sampled-events.ts';

describe('of PostgreSQL', () => {
  test('a create, an update and a delete are those, at the time of the source', () => {
    expect(changeOf(sample('postgresql-create'))).toMatchObject({
      type: 'create',
      entity: 'customer',
      entityId: '1',
      name: 'Kretchmar',
      actor: 'debezium',
      at: 1559033904863,
      paths: { first_name: { after: 'Anne' }, email: { after: '********' } },
    });
    const full = {
      ...sample('postgresql-update'),
      before: { id: 1, first_name: 'Anne', last_name: 'Kretchmar', email: 'a@b' },
    };
    expect(changeOf(full)).toMatchObject({
      type: 'update',
      paths: { first_name: { before: 'Anne', after: 'Anne Marie' }, email: { before: '********', after: '********' } },
    });
    expect(changeOf({ ...full, op: 'd', after: null })).toMatchObject({ type: 'delete', paths: { id: { before: 1 } } });
  });

  test('an update without before, or with its key alone, is marked as whole', () => {
    const { before: _, ...without } = sample('postgresql-update');
    const filled = { ...without, before: { id: 1, first_name: '', last_name: '', email: null } };
    for (const event of [sample('postgresql-update'), without, { ...without, before: null }, filled]) {
      const change = changeOf(event);
      expect(change.paths.first_name).toEqual({ after: 'Anne Marie' });
      expect(JSON.parse(change.marks ?? '{}')).toEqual({ whole: true });
    }
  });

  test('a delete with empty values beside its key does not claim that they were there', () => {
    expect(changeOf(sample('postgresql-delete'))).toMatchObject({
      type: 'delete',
      entityId: '1',
      paths: { id: { before: 1 } },
    });
    expect(Object.keys(changeOf(sample('postgresql-delete')).paths)).toEqual(['id']);
  });

  test('an unavailable value is what before has, else it is left out', () => {
    const unknown = {
      id: 1,
      first_name: 'x',
      last_name: '__debezium_unavailable_value',
      email: '__debezium_unavailable_value',
    };
    const event = sample('postgresql-update');
    const known = {
      ...event,
      before: { id: 1, first_name: 'y', last_name: 'z', email: '__debezium_unavailable_value' },
      after: unknown,
    };
    expect(changeOf(known).paths).toEqual({ first_name: { before: 'y', after: 'x' } });
    const alone = changeOf({ ...event, before: null, after: unknown });
    expect(alone.paths).toEqual({ id: { after: 1 }, first_name: { after: 'x' } });
    expect(alone.marks).toBeUndefined();
    const kinds = {
      bytes: 'X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==',
      texts: ['__debezium_unavailable_value'],
      hstore: { __debezium_unavailable_value: '__debezium_unavailable_value' },
      uuids: ['b68a35a7-17ad-35b3-af2a-ae46edb4545a'],
      numbers: [...Buffer.from('__debezium_unavailable_value')],
    };
    expect(changeOf({ ...event, before: null, after: { id: 1, ...kinds } }).paths).toEqual({ id: { after: 1 } });
  });

  test('a key that changes comes as a delete and a create, which are related by their headers', () => {
    const key = (id: number) => Buffer.from(JSON.stringify({ schema: {}, payload: { id } })).toString('base64');
    const header = (name: string, id: number) =>
      eventHeaders((headerName) => (headerName === `x-debezium-__debezium.${name}` ? key(id) : undefined));
    expect(changeOf(sample('postgresql-delete'), mapping, header('newkey', 2)).related).toEqual([
      { entity: 'customer', entityId: '2' },
    ]);
    expect(changeOf(sample('postgresql-create'), mapping, header('oldkey', 9)).related).toEqual([
      { entity: 'customer', entityId: '9' },
    ]);
  });

  test('a row of a snapshot is a create by system, or an update of what the history has alive', () => {
    const result = resultOf(sample('postgresql-read'));
    if (result.kind !== 'snapshot') throw new Error(result.kind);
    expect(changeOfSnapshot(result.document, undefined, undefined)).toMatchObject({
      type: 'create',
      actor: 'system',
      entityId: '1',
    });
    const alive = '{"email":"********","id":1,"last_name":"Kretchmar","first_name":"Ann"}';
    const changeAfter = (document: string, complete = true) =>
      changeOfSnapshot(result.document, { exists: true, complete, document }, undefined);
    expect(changeAfter(alive)).toMatchObject({
      type: 'update',
      actor: 'system',
      paths: '{"first_name":{"before":"Ann","after":"Anne"}}',
    });
    expect(changeAfter(alive.replace('"Ann"', '"Anne"'))).toBeUndefined();
    // Nobody knows all values that an incomplete document had.
    expect(changeAfter('{"first_name":"Ann"}', false)).toMatchObject({ type: 'update', marks: '{"whole":true}' });
  });

  test('a truncate is as the mapping says', () => {
    expect(resultOf(sample('postgresql-truncate'))).toMatchObject({
      kind: 'truncate',
      table: { entity: 'customer' },
      at: 1559033904863,
    });
    const ignoring = readMapping(
      '{"version":1,"tables":{"public.customers":{"entity":"customer","id":["id"],"truncate":"ignore"}}}',
    );
    expect(resultOf(sample('postgresql-truncate'), ignoring)).toEqual({ kind: 'ignored' });
  });

  test('without columns of the id in the mapping the key must come in a header', () => {
    const unnamed = readMapping('{"version":1,"tables":{"public.customers":{"entity":"customer"}}}');
    expect(resultOf(sample('postgresql-create'), unnamed)).toMatchObject({
      kind: 'changes',
      changes: [{ kind: 'rejected', reason: expect.stringContaining('"id" in the mapping') }],
    });
    const headers = eventHeaders((name) => (name === 'x-debezium-key' ? '{"id":1}' : undefined));
    expect(changeOf(sample('postgresql-create'), unnamed, headers).entityId).toBe('1');
  });
});

describe('of MySQL', () => {
  test('events with and without a schema are the same', () => {
    expect(changeOf(sample('mysql-update'))).toMatchObject({
      at: 1465581029100,
      paths: { first_name: { before: 'Anne', after: 'Anne Marie' } },
    });
    const withSchema = sample('mysql-create-with-schema');
    expect(changeOf(withSchema)).toMatchObject({ type: 'create', entityId: '1004', at: 0 });
    expect(identityOf(withSchema)).toBe(identityOf(withSchema.payload));
  });

  test('each row of one statement is a change of its own', () => {
    const event = sample('mysql-update');
    expect(identityOf(from(event, { row: 1 }))).not.toBe(identityOf(event));
  });
});

describe('what is no change', () => {
  test.each(['postgresql-message', 'postgresql-transaction', 'heartbeat', 'mysql-schema-change'])(
    '%s is ignored',
    (name) => {
      expect(resultOf(sample(name))).toEqual({ kind: 'ignored' });
      expect(resultOf({ schema: { type: 'struct' }, payload: sample(name) })).toEqual({ kind: 'ignored' });
    },
  );

  test('tombstones and tables that the mapping does not name are ignored', () => {
    expect(resultOf(null)).toEqual({ kind: 'ignored' });
    expect(resultOf({ schema: null, payload: null })).toEqual({ kind: 'ignored' });
    expect(resultOf(from(sample('postgresql-create'), { table: 'other' }))).toEqual({ kind: 'ignored' });
  });

  test('a flattened record is rejected with the setting that fixes it', () => {
    expect(resultOf(sample('flattened'))).toEqual({
      kind: 'rejected',
      reason: expect.stringContaining('ExtractNewRecordState'),
    });
    expect(resultOf({ id: 1, __deleted: 'false' })).toMatchObject({ kind: 'rejected' });
  });

  test('a line of an import is not of Debezium', () => {
    expect(
      readDebeziumEvent(parseJson('{"op":"insert","entity":"a","entityId":"1","after":{"ts_ms":1}}')),
    ).toBeUndefined();
    expect(readDebeziumEvent(parseJson('[1]'))).toBeUndefined();
  });

  test('an event without a mapping, of another source, or without a time is rejected', () => {
    const read = readDebeziumEvent(parseJson(JSON.stringify(sample('postgresql-create'))));
    if (read === undefined) throw new Error('no event');
    expect(changesOfEvent(undefined, read, {}, { actor: 'x' })).toMatchObject({
      reason: expect.stringContaining('ANNALS_RECORDER_MAPPING'),
    });
    const sources = readMapping(
      '{"version":1,"sources":["shop"],"tables":{"public.customers":{"entity":"c","id":["id"]}}}',
    );
    expect(resultOf(sample('postgresql-create'), sources)).toMatchObject({
      reason: expect.stringContaining('"sources"'),
    });
    expect(resultOf(from(sample('postgresql-create'), { name: 'shop' }), sources)).toMatchObject({ kind: 'changes' });
    expect(resultOf(from(sample('postgresql-create'), { ts_ms: null, ts_us: 'x', ts_ns: null }))).toMatchObject({
      reason: expect.stringContaining('ts_ms'),
    });
  });
});
