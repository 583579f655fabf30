import { finish, type JsonObject, parseJson, stringifyJson } from '@annals/client/json';
import { Validator } from '@cfworker/json-schema';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../src/api/history-reads.ts';
import { columnsOf, documentForSchema, templateOf } from '../src/data/instances/schema-view.ts';
import {
  contentToSave,
  editableText,
  readEdited,
  readEditedObject,
  versionOf,
} from '../src/data/json-editor/document-text.ts';
import { faultsOfErrors } from '../src/data/json-editor/schema-faults.ts';
import { touchesOfPaths } from '../src/document/touches-of-paths.ts';

const object = (text: string) => parseJson(text) as JsonObject;
const claim = object(`{
  "id": "claim-1",
  "metadata": {"version": 3, "createdAt": "2026-11-01T00:00:00.000Z", "note": "by phone", "modifiedAt": "2026-11-01T00:00:00.000Z"},
  "amount": 19.90, "big": 9007199254740993, "least": -0, "vast": 1E400, "by": {"10": 1.10, "2": 0.5}
}`);

describe('a document that is edited', () => {
  test('keeps every digit, the order of its members, and what it keeps in metadata', () => {
    const text = editableText(claim);
    expect(text).toContain('"amount": 19.90');
    expect(text).not.toContain('claim-1');
    expect(text).not.toContain('version');
    const saved = contentToSave(object(text), { id: 'claim-1', version: versionOf(claim) });
    expect(stringifyJson(saved)).toBe(
      '{"id":"claim-1","metadata":{"note":"by phone","version":3},"amount":19.90,"big":9007199254740993,"least":-0,' +
        '"vast":1E400,"by":{"10":1.10,"2":0.5}}',
    );
  });

  test('a new one has no version', () => {
    const saved = contentToSave(object('{"a":1}'), { id: 'x', version: undefined });
    expect(stringifyJson(saved)).toBe('{"id":"x","a":1}');
  });

  test.each([
    ['{"a": 1,\n "b": }', 'Line 2, column 7: expected a value.'],
    ['{"a" 1}', 'Line 1, column 6: expected a colon.'],
    ['', 'Line 1, column 1: expected a value.'],
  ])('the fault of %j is reported with its line', (text, fault) => {
    expect(readEdited(text).fault).toBe(fault);
  });

  test('what is no object is no document', () => {
    expect(readEditedObject('[1]').fault).toBe('A document is an object: { … }.');
    expect(readEdited('[1]').fault).toBeUndefined();
  });
});

describe('the schema of a type', () => {
  const schema = object(`{
    "type": "object",
    "properties": {"status": {"enum": ["OPEN", "CLOSED"]}, "order": {"type": "string"}, "amount": {"minimum": 0},
      "lines": {"type": "array", "items": {"type": "object", "required": ["sku"]}}, "a.b": {}},
    "required": ["status", "order", "amount"], "additionalProperties": false
  }`);
  const faults = (text: string) => {
    const document = JSON.parse(stringifyJson(documentForSchema(object(text), schema)));
    const validator = new Validator(JSON.parse(stringifyJson(schema)), '2020-12', false);
    return faultsOfErrors(validator.validate(document).errors).map(({ path }) => path);
  };

  test('sees id, name and metadata only where it names them, as in the service', () => {
    expect(faults('{"id":"x","name":"X","metadata":{},"status":"OPEN","order":"1","amount":0}')).toEqual([]);
  });

  test('each fault is reported once, at its own path', () => {
    expect(faults('{"status":"LOST","order":1,"amount":-1,"lines":[{},{"sku":1}],"more":1}').sort()).toEqual(
      ['amount', 'lines.0', 'more', 'order', 'status'].sort(),
    );
  });

  test('its properties are the columns; those that the query language cannot name are not sorted by', () => {
    const columns = columnsOf(schema, []);
    expect(columns.map(({ key }) => key)).toEqual(['status', 'order', 'amount', 'lines', 'a.b']);
    expect(columns[0]?.choices).toEqual(['OPEN', 'CLOSED']);
    expect(columns[4]?.isField).toBe(false);
    expect(columnsOf(undefined, [object('{"id":"1","b":1}'), object('{"a":1}')]).map(({ key }) => key)).toEqual([
      'b',
      'a',
    ]);
  });

  test('a new document has what it requires', () => {
    expect(stringifyJson(templateOf(schema))).toBe('{"name":{"en":""},"status":"OPEN","order":"","amount":""}');
  });
});

function change(number: number, paths: readonly string[], actor = `actor ${number}`) {
  const entry: Entry = {
    at: '2026-01-01T00:00:00.000Z',
    type: 'update',
    entity: 'order',
    entityId: '1',
    name: undefined,
    actor,
    schemaVersion: undefined,
    paths: new Map(paths.map((path) => [path, {}])),
    related: [],
    context: undefined,
    ref: String(number),
    cut: new Set(),
  };
  return { number, entry };
}

test('the last change of a path, of what contains it, and of what it contains counts', () => {
  const touchesOf = finish(
    touchesOfPaths([
      change(4, ['items.0.price']),
      change(3, ['items']),
      change(2, ['a\\.b', 'status']),
      change(1, ['items.0.price', 'status', 'x']),
    ]),
  );
  const numbers = Object.fromEntries(
    ['items.0.price', 'items.1.price', 'items', 'status', 'a\\.b', 'a', 'x', 'y'].map((path) => [
      path,
      touchesOf(path)?.last.number,
    ]),
  );
  expect(numbers).toEqual({
    'items.0.price': 4,
    'items.1.price': 3,
    items: 4,
    status: 2,
    'a\\.b': 2,
    a: undefined,
    x: 1,
    y: undefined,
  });
});

test('a change of the whole document touches every path', () => {
  expect(finish(touchesOfPaths([change(2, ['']), change(1, ['a'])]))('a')?.last.number).toBe(2);
});

test('all who ever touched a path are listed once, the latest first', () => {
  const touchesOf = finish(
    touchesOfPaths([
      change(5, ['price.amount'], 'Ada'),
      change(4, ['price.currency'], 'Grace'),
      change(3, ['price'], 'Ida'),
      change(2, ['price.amount'], 'Ada'),
      change(1, [''], 'Grace'),
    ]),
  );
  expect(touchesOf('price')?.actors?.map(({ actor }) => actor)).toEqual(['Ada', 'Grace', 'Ida']);
  expect(touchesOf('price.amount')?.actors?.map(({ actor }) => actor)).toEqual(['Ada', 'Ida', 'Grace']);
  expect(touchesOf('name')?.actors?.map(({ actor }) => actor)).toEqual(['Grace']);
});

test('two actors of one name are two, and one with two names is one', () => {
  const by = (number: number, actor: string, actorId?: string) => {
    const { entry } = change(number, ['a'], actor);
    return { number, entry: actorId === undefined ? entry : { ...entry, actorId } };
  };
  const touchesOf = finish(
    touchesOfPaths([by(4, 'Ada King', 'u-1'), by(3, 'Ada', 'u-2'), by(2, 'Ada', 'u-1'), by(1, 'Ada')]),
  );
  expect(touchesOf('a')?.actors.map(({ actor, actorId }) => [actor, actorId])).toEqual([
    ['Ada King', 'u-1'],
    ['Ada', 'u-2'],
    ['Ada', undefined],
  ]);
});
