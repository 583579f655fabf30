import { describe, expect, test } from 'vitest';
import { eventHeaders } from '../../../../src/sources/recorder/debezium/read-event.ts';
import { changeOf, mongodb, resultOf, sample } from './sampled-events.ts';

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

  test.each(['mongodb-create', 'mongodb-update', 'mongodb-delete'])(
    '%s happened when its source says, also where a time of it is in nanoseconds',
    (name) => {
      const { source, ...rest } = sample(name) as { source: Record<string, unknown> };
      const at = 1558965508000;
      const nanoseconds = 1558965508000000000;
      for (const times of [
        {},
        { ts_us: nanoseconds },
        { ts_us: undefined, ts_ms: nanoseconds },
        { ts_us: nanoseconds, ts_ms: nanoseconds },
        { ts_us: null },
      ]) {
        expect(changeOf({ ...rest, source: { ...source, ...times } }, mongodb)).toMatchObject({ at });
      }
      const none = { ts_us: undefined, ts_ms: undefined, ts_ns: undefined };
      expect(resultOf({ ...rest, source: { ...source, ...none } }, mongodb)).toMatchObject({
        kind: 'rejected',
        reason: 'has no "ts_ms" in its "source" that is a time from 1970 to 2100',
      });
    },
  );

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

  test('an event from which its document cannot be derived is rejected with the setting that fixes it', () => {
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
