import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/json/parse.ts';
import { readStructuredEvent } from '../../../src/recorder/cloud-events/read-cloud-event.ts';
import { changesOfEvent, type EventResult } from '../../../src/recorder/debezium/changes-of-event.ts';
import { type EventHeaders, eventHeaders } from '../../../src/recorder/debezium/event-headers.ts';
import { readDebeziumCloudEvent, readDebeziumEvent } from '../../../src/recorder/debezium/read-event.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { changeOfSnapshot } from '../../../src/recording/mapping/snapshot-change.ts';

type Members = Record<string, unknown>;

const mapping = readMapping(
  JSON.stringify({
    version: 1,
    tables: {
      'public.customers': { entity: 'customer', id: ['id'], name: 'last_name', mask: ['email'] },
      'inventory.customers': { entity: 'client', id: ['id'] },
      's1.a': { entity: 'a', id: ['pk'] },
    },
  }),
);
const mongodb = readMapping('{"version":1,"tables":{"inventory.customers":{"entity":"customer","mask":["card"]}}}');

function sample(name: string): Members {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'samples', `${name}.json`), 'utf8'));
}

function resultOf(event: unknown, of = mapping, headers: EventHeaders = {}): EventResult {
  const read = readDebeziumEvent(parseJson(JSON.stringify(event)));
  if (read === undefined) throw new Error('this is no event of Debezium');
  return changesOfEvent(of, read, headers, { actor: 'debezium' });
}

/** The only change of an event, its paths parsed. */
function changeOf(event: unknown, of = mapping, headers: EventHeaders = {}) {
  const result = resultOf(event, of, headers);
  const [mapped] = result.kind === 'changes' ? result.changes : [];
  if (mapped?.kind !== 'change') throw new Error(JSON.stringify(result));
  const { paths, ...change } = mapped.change;
  return { ...change, paths: JSON.parse(paths) };
}

function identityOf(event: unknown, of = mapping): string {
  return Buffer.from(changeOf(event, of).identity).toString('hex');
}

/** The event with other members in its `source`. */
function from(event: Members, source: Members): Members {
  return { ...event, source: { ...(event.source as Members), ...source } };
}

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
      eventHeaders((asked) => (asked === `x-debezium-__debezium.${name}` ? key(id) : undefined));
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
    expect(changeOfSnapshot(result.document, undefined)).toMatchObject({
      type: 'create',
      actor: 'system',
      entityId: '1',
    });
    const alive = '{"email":"********","id":1,"last_name":"Kretchmar","first_name":"Ann"}';
    expect(changeOfSnapshot(result.document, alive)).toMatchObject({
      type: 'update',
      actor: 'system',
      paths: '{"first_name":{"before":"Ann","after":"Anne"}}',
    });
    expect(changeOfSnapshot(result.document, alive.replace('"Ann"', '"Anne"'))).toBe('unchanged');
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

describe('of MongoDB', () => {
  const event = sample('mongodb-update');
  const key = eventHeaders((name) =>
    name === 'x-debezium-key' ? Buffer.from('{"id":"1004"}').toString('base64') : undefined,
  );

  test('documents are extended JSON in strings, and the id is that of _id', () => {
    expect(changeOf(sample('mongodb-create'), mongodb)).toMatchObject({
      entityId: '1004',
      paths: { _id: { after: 1004 } },
    });
    expect(changeOf(event, mongodb)).toMatchObject({
      entityId: '1004',
      paths: { first_name: { before: 'unknown', after: 'Anne Marie' } },
    });
    expect(changeOf(sample('mongodb-delete'), mongodb)).toMatchObject({ type: 'delete', entityId: '1004' });
  });

  test('extended JSON of both versions becomes plain values with their digits', () => {
    const after =
      '{"_id":{"$oid":"596e275826f08b2730779e1f"},"n":{"$numberDecimal":"1.10"},"i":{"$numberInt":"5"},"d":{"$date":1465491461815},' +
      '"e":{"$date":{"$numberLong":"0"}},"f":{"$date":"2020-01-01T00:00:00Z"},"b":{"$binary":"a2Fma2E=","$type":"00"},' +
      '"c":{"$binary":{"base64":"a2Fma2E=","subType":"00"}},"x":{"$numberDouble":"NaN"},"t":{"$timestamp":{"t":1,"i":2}},"l":[{"$numberLong":"1"}]}';
    const change = resultOf({ ...sample('mongodb-create'), after }, mongodb);
    const [mapped] = change.kind === 'changes' ? change.changes : [];
    const paths = mapped?.kind === 'change' ? mapped.change.paths : '';
    expect(paths).toContain('"n":{"after":1.10}');
    expect(JSON.parse(paths)).toMatchObject({
      _id: { after: '596e275826f08b2730779e1f' },
      i: { after: 5 },
      d: { after: '2016-06-09T16:57:41.815Z' },
      e: { after: '1970-01-01T00:00:00.000Z' },
      f: { after: '2020-01-01T00:00:00Z' },
      b: { after: '\\x6b61666b61' },
      c: { after: '\\x6b61666b61' },
      x: { after: 'NaN' },
      't.$timestamp.t': { after: 1 },
      l: { after: [1] },
    });
  });

  test('before with updateDescription gives the document after', () => {
    const update = {
      ...event,
      after: null,
      before: '{"_id":{"$numberLong":"1004"},"a":{"b":1,"c":[1,2,3]},"gone":1,"same":{"$numberLong":"5"}}',
      updateDescription: {
        updatedFields: '{"a.b":2,"a.c.0":9,"new.deep":true}',
        removedFields: ['gone'],
        truncatedArrays: [{ field: 'a.c', size: 2 }],
      },
    };
    expect(changeOf(update, mongodb).paths).toEqual({
      'a.b': { before: 1, after: 2 },
      'a.c': { before: [1, 2, 3], after: [9, 2] },
      'new.deep': { after: true },
      gone: { before: 1 },
    });
  });

  test('updateDescription alone gives single values, with masks', () => {
    const updateDescription = {
      updatedFields: '{"a.b":{"c":1},"card.number":"4111","card":{"cvc":1}}',
      removedFields: ['gone.x'],
      truncatedArrays: null,
    };
    const change = changeOf({ ...event, before: null, after: null, updateDescription }, mongodb, key);
    expect(change).toMatchObject({ type: 'update', entityId: '1004' });
    expect(change.marks).toBeUndefined();
    expect(change.paths).toEqual({
      'gone.x': {},
      'a.b': { after: { c: 1 } },
      'card.number': { after: '********' },
      card: { after: '********' },
    });
  });

  test('what does not tell its document is rejected with the setting that mends it', () => {
    const reason = (...of: Parameters<typeof resultOf>) => {
      const result = resultOf(...of);
      return result.kind === 'rejected' ? result.reason : result.kind === 'changes' ? result.changes[0] : result;
    };
    const { before: _, ...withoutBefore } = sample('mongodb-delete');
    expect(reason(withoutBefore, mongodb)).toMatch(/pre_image.*X-DEBEZIUM-KEY/);
    expect(changeOf(withoutBefore, mongodb, key)).toMatchObject({ type: 'delete', entityId: '1004' });
    expect(reason({ ...event, before: null, after: null }, mongodb)).toMatch(/pre_image.*X-DEBEZIUM-KEY/);
    const truncated = { updatedFields: '{}', removedFields: null, truncatedArrays: [{ field: 'a', size: 1 }] };
    expect(reason({ ...event, before: null, after: null, updateDescription: truncated }, mongodb, key)).toMatch(
      /shortens an array/,
    );
    expect(reason({ ...event, after: 'no json' }, mongodb)).toBe('"after" is no extended JSON of a document');
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

  test('a flattened record is rejected with the setting that mends it', () => {
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
    expect(resultOf(from(sample('postgresql-create'), { ts_ms: null, ts_us: 'x' }))).toMatchObject({
      reason: expect.stringContaining('ts_ms'),
    });
  });
});

describe('values', () => {
  const schema = (fields: object[]) => ({ type: 'struct', fields: [{ type: 'struct', field: 'after', fields }] });
  const id = { type: 'int32', field: 'id' };
  const payload = (after: Members) => ({ ...sample('postgresql-create'), after: { id: 1, ...after } });

  test('decimals of each mode are numbers, or the text that they came as', () => {
    const scale = { name: 'org.apache.kafka.connect.data.Decimal', parameters: { scale: '2' } };
    const fields = [
      id,
      { type: 'bytes', field: 'precise', ...scale },
      { type: 'bytes', field: 'negative', ...scale },
      { type: 'bytes', field: 'numeric', ...scale },
      { type: 'struct', field: 'variable', name: 'io.debezium.data.VariableScaleDecimal' },
      { type: 'double', field: 'double' },
      { type: 'string', field: 'string' },
    ];
    const after = {
      precise: 'MDk=',
      negative: '/w==',
      numeric: 1.1,
      variable: { scale: 3, value: 'AQ==' },
      double: 1.5,
      string: '1.10',
    };
    expect(changeOf({ schema: schema(fields), payload: payload(after) }).paths).toMatchObject({
      precise: { after: 123.45 },
      negative: { after: -0.01 },
      numeric: { after: 1.1 },
      variable: { after: 0.001 },
      double: { after: 1.5 },
      string: { after: '1.10' },
    });
    expect(resultOf(payload({ variable: { scale: 3, value: 'AQ==' } }))).toEqual({
      kind: 'rejected',
      reason: expect.stringMatching(/variable.*decimal\.handling\.mode/),
    });
  });

  test('with their schema times are text, bytes are hexadecimal, and JSON is walked', () => {
    const named = (field: string, type: string, name: string, rest = {}) => ({ field, type, name, ...rest });
    const fields = [
      id,
      named('date', 'int32', 'io.debezium.time.Date'),
      named('ms', 'int64', 'io.debezium.time.Timestamp'),
      named('us', 'int64', 'io.debezium.time.MicroTimestamp'),
      named('ns', 'int64', 'io.debezium.time.NanoTimestamp'),
      named('time', 'int64', 'io.debezium.time.MicroTime'),
      named('long', 'int64', 'io.debezium.time.MicroTime'),
      named('json', 'string', 'io.debezium.data.Json'),
      named('bits', 'bytes', 'io.debezium.data.Bits', { parameters: { length: '10' } }),
      { field: 'raw', type: 'bytes' },
      { field: 'dates', type: 'array', items: { type: 'int32', name: 'io.debezium.time.Date' } },
    ];
    const after = {
      date: 18262,
      ms: 1577836800120,
      us: 1577836800000001,
      ns: -1,
      time: 3600000000,
      long: 360000000000,
      json: '{"a": 1}',
      bits: 'AwE=',
      raw: 'a2Fma2E=',
      dates: [0, null],
    };
    expect(changeOf({ schema: schema(fields), payload: payload(after) }).paths).toMatchObject({
      date: { after: '2020-01-01' },
      ms: { after: '2020-01-01T00:00:00.12' },
      us: { after: '2020-01-01T00:00:00.000001' },
      ns: { after: '1969-12-31T23:59:59.999999999' },
      time: { after: '01:00:00' },
      long: { after: 360000000000 },
      'json.a': { after: 1 },
      bits: { after: '0100000011' },
      raw: { after: '\\x6b61666b61' },
      dates: { after: ['1970-01-01', null] },
    });
  });
});

describe('the identity', () => {
  const event = sample('postgresql-create');

  test('is the same for each delivery: no time of the envelope and no version counts', () => {
    const again = {
      ...from(event, { version: '9.9', sequence: null, ts_ns: 5 }),
      ts_ms: 5,
      ts_us: 6,
      transaction: { id: 'x' },
    };
    expect(identityOf(again)).toBe(identityOf(event));
  });

  test('is another one for each other event', () => {
    const others = [
      from(event, { lsn: 1 }),
      from(event, { txId: 1 }),
      from(event, { name: 'other' }),
      from(event, { db: 'other' }),
      { ...event, after: { id: 1 } },
      { ...event, op: 'u' },
    ];
    expect(new Set([event, ...others].map((one) => identityOf(one))).size).toBe(others.length + 1);
  });
});

describe('in a CloudEvent', () => {
  const read = (event: Members) => {
    const { attributes, data } = readStructuredEvent(parseJson(JSON.stringify(event)));
    return readDebeziumCloudEvent(attributes, data);
  };

  test('source and op are extension attributes, and rows of one id are told apart', () => {
    const event = sample('cloudevent');
    const result = (one: Members) => {
      const given = read(one);
      return given && changesOfEvent(mapping, given, {}, { actor: 'x' });
    };
    expect(result(event)).toMatchObject({
      kind: 'changes',
      changes: [{ change: { type: 'create', entity: 'a', entityId: '1', at: 1578923739738 } }],
    });
    const other = { ...event, data: { before: null, after: { pk: 2, name: 'Bob' } } };
    const identities = [event, other].map((one) => {
      const given = result(one);
      return given?.kind === 'changes' && given.changes[0]?.kind === 'change'
        ? given.changes[0].change.identity
        : undefined;
    });
    expect(identities[0]).not.toEqual(identities[1]);
    const { iodebeziumtxid: txId, ...rest } = event;
    const withTransaction = result({ ...rest, iodebeziumtxId: txId, iodebeziumtxid: '565:29274832' });
    expect(withTransaction).toMatchObject({ changes: [{ change: { identity: identities[0] } }] });
    expect(result({ ...event, data: { schema: {}, payload: event.data } })).toMatchObject({ kind: 'changes' });
    expect(result({ ...event, data: null })).toEqual({ kind: 'ignored' });
  });

  test('without the extension attributes it is rejected with the setting that mends it, and others are not of Debezium', () => {
    const { iodebeziumop: _, ...without } = sample('cloudevent');
    expect(read(without)).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('extension.attributes.enable'),
    });
    expect(read({ ...without, type: 'com.example.changed' })).toBeUndefined();
  });
});
