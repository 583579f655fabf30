import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../../src/core/json/parse.ts';
import { readStructuredEvent } from '../../../../src/sources/recorder/cloud-event.ts';
import { changesOfEvent } from '../../../../src/sources/recorder/debezium/changes-of-event.ts';
import { readDebeziumCloudEvent } from '../../../../src/sources/recorder/debezium/read-event.ts';
import { changeOf, from, identityOf, type Members, mapping, resultOf, sample } from './sampled-events.ts';

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

  test('source and op are extension attributes, and rows under one event id have different identities', () => {
    const event = sample('cloudevent');
    const result = (members: Members) => {
      const debeziumEvent = read(members);
      return debeziumEvent && changesOfEvent(mapping, debeziumEvent, {}, { actor: 'x' });
    };
    expect(result(event)).toMatchObject({
      kind: 'changes',
      changes: [{ change: { type: 'create', entity: 'a', entityId: '1', at: 1578923739738 } }],
    });
    const secondRow = { ...event, data: { before: null, after: { pk: 2, name: 'Bob' } } };
    const identities = [event, secondRow].map((members) => {
      const outcome = result(members);
      return outcome?.kind === 'changes' && outcome.changes[0]?.kind === 'change'
        ? outcome.changes[0].change.identity
        : undefined;
    });
    expect(identities[0]).not.toEqual(identities[1]);
    const { iodebeziumtxid: txId, ...rest } = event;
    const withTransaction = result({ ...rest, iodebeziumtxId: txId, iodebeziumtxid: '565:29274832' });
    expect(withTransaction).toMatchObject({ changes: [{ change: { identity: identities[0] } }] });
    expect(result({ ...event, data: { schema: {}, payload: event.data } })).toMatchObject({ kind: 'changes' });
    expect(result({ ...event, data: null })).toEqual({ kind: 'ignored' });
  });

  test('without the extension attributes it is rejected with the setting that fixes it, and others are not of Debezium', () => {
    const { iodebeziumop: _, ...without } = sample('cloudevent');
    expect(read(without)).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('extension.attributes.enable'),
    });
    expect(read({ ...without, type: 'com.example.changed' })).toBeUndefined();
  });
});
