import { expect, test } from 'vitest';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { ChangeReader, type ReadChange } from '../../../src/sources/recorder/read-change.ts';

const tables = { 'public.orders': { entity: 'order', id: ['id'], mask: ['card'] } };
const masking = readMapping(JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables }));
const plain = readMapping(
  JSON.stringify({
    version: 1,
    tenant: { value: 'acme' },
    tables: { 'public.orders': { entity: 'order', id: ['id'] } },
  }),
);
const source = { name: 'shop', schema: 'public', table: 'orders', ts_ms: 1, lsn: 7, query: "insert … 'canary'" };
const row = { id: 1, card: 'canary', note: 'n' };

function read(
  value: object,
  mapping: typeof masking | undefined,
  way: 'read' | 'readStructured' = 'read',
): ReadChange | undefined {
  const body = Buffer.from(JSON.stringify(value));
  const reading = { tenant: 'acme', clientName: 'c', maySetActor: true, mapping, headers: {} };
  return new ChangeReader(reading, body)[way](body, { isAlone: true })[0];
}

function storedOf(change: ReadChange | undefined): string | undefined {
  if (change === undefined || !('stored' in change) || !('line' in change.stored)) throw new Error('it keeps no text');
  return change.stored.line;
}

test('an event that cannot be mapped is kept whole where the mapping hides nothing', () => {
  const event = { op: 'u', source: { ...source, ts_ms: null }, after: row };
  const change = read(event, plain);
  expect(change).toMatchObject({ kind: 'rejected' });
  expect(storedOf(change)).toBe(JSON.stringify(event));
  const cloudEvent = { specversion: '0.3', id: 'e', source: 's', type: 't', data: row };
  expect(storedOf(read(cloudEvent, undefined, 'readStructured'))).toBe(JSON.stringify(cloudEvent));
});

test('where the mapping hides values, only what tells where the event comes from is kept', () => {
  const event = { op: 'u', ts_ms: 5, source: { ...source, ts_ms: null }, before: null, after: row, extra: 'canary' };
  const kept = storedOf(read({ schema: {}, payload: event }, masking));
  expect(JSON.parse(kept ?? '')).toEqual({
    op: 'u',
    ts_ms: 5,
    source: { name: 'shop', schema: 'public', table: 'orders', lsn: 7 },
  });
  const attributes = { specversion: '0.3', id: 'e', source: 's', type: 't', iodebeziumtable: 'orders' };
  const cloudEvent = { ...attributes, iodebeziumquery: 'canary', other: 'canary', data: row };
  expect(JSON.parse(storedOf(read(cloudEvent, masking, 'readStructured')) ?? '')).toEqual(attributes);
  expect(storedOf(read({ specversion: '0.3', data: row }, masking, 'readStructured'))).toBe('{"specversion":"0.3"}');
  expect(storedOf(read([row] as unknown as object, masking, 'readStructured'))).toBeUndefined();
});

test('a line with a member that is not known keeps its name, so that a retry is rejected as well, and not its value', () => {
  const line = { id: 'l', op: 'insert', entity: 'order', entityId: '1', at: '2026-09-15T10:11:12Z', after: row };
  const entities = { order: { mask: ['card'] } };
  const mapping = readMapping(JSON.stringify({ version: 1, tenant: { value: 'acme' }, entities }));
  const change = read({ ...line, crad: 'canary' }, mapping);
  expect(change).toMatchObject({ kind: 'rejected', reason: '"crad" is not a member of a change' });
  const kept = JSON.parse(storedOf(change) ?? '');
  expect(kept).toEqual({ ...line, after: { ...row, card: '********' }, crad: null, actor: 'c' });
  expect(read(kept, undefined)).toMatchObject({ kind: 'rejected', reason: '"crad" is not a member of a change' });
});

test('a CloudEvent in binary mode keeps its attributes, and its data where nothing is hidden', () => {
  const headers = {
    'ce-specversion': '0.3',
    'ce-id': 'e',
    'ce-iodebeziumquery': 'canary',
    'content-type': 'application/json',
  };
  const body = Buffer.from(JSON.stringify(row));
  const of = (mapping: typeof masking | undefined) =>
    storedOf(
      new ChangeReader({ tenant: 'acme', clientName: 'c', maySetActor: true, mapping, headers }, body).readBinary(
        body,
      )[0],
    );
  expect(JSON.parse(of(masking) ?? '')).toEqual({ specversion: '0.3', id: 'e' });
  expect(JSON.parse(of(plain) ?? '').data).toBe(body.toString());
});

test('a row of a snapshot keeps its row, masked', () => {
  const change = read({ op: 'r', source, after: row }, masking);
  expect(change).toMatchObject({ kind: 'snapshot' });
  expect(JSON.parse(storedOf(change) ?? '')).toMatchObject({
    table: 'public.orders',
    type: 'create',
    after: { id: 1, card: '********', note: 'n' },
  });
});

test('a line that cannot be recorded is kept masked and without what is ignored; its context keeps ignored members', () => {
  const entities = { order: { mask: ['card'], ignore: ['etag'] } };
  const mapping = readMapping(JSON.stringify({ version: 1, entities }));
  const line = { op: 'update', entity: 'order', entityId: '', id: 'a', at: '2026-01-02T03:04:05Z' };
  const document = { card: 'canary', etag: 'canary', note: 'n' };
  const change = read({ ...line, before: document, after: document, context: { etag: 'e', card: 'canary' } }, mapping);
  expect(change).toMatchObject({ kind: 'rejected', reason: '"entityId" is empty' });
  const kept = { card: '********', note: 'n' };
  const context = { etag: 'e', card: '********' };
  expect(JSON.parse(storedOf(change) ?? '')).toEqual({ ...line, before: kept, after: kept, context, actor: 'c' });
});
