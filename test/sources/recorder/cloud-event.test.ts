import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/core/json/parse.ts';
import { lineOfCloudEvent, readBinaryEvent, readStructuredEvent } from '../../../src/sources/recorder/cloud-event.ts';

const event = {
  specversion: '1.0',
  id: 'A-1',
  source: '/shop',
  type: 'com.example.order.changed',
  time: '2026-01-01T00:00:00Z',
  data: { op: 'insert', entity: 'order', entityId: '7', after: { total: 1.5 } },
};

function lineOf(members: object) {
  return lineOfCloudEvent(readStructuredEvent(parseJson(JSON.stringify(members))));
}

describe('a CloudEvent', () => {
  test('is a line whose time is that of the event, identified by source and id together', () => {
    const { line, identity } = lineOf(event);
    expect(JSON.parse(line)).toEqual({ ...event.data, at: event.time });
    expect(lineOf({ ...event, type: 'other', data: { ...event.data, id: 'own' } }).identity).toEqual(identity);
    for (const difference of [{ source: '/other' }, { id: 'A-2' }, { source: '/sho', id: 'pA-1' }]) {
      expect(lineOf({ ...event, ...difference }).identity).not.toEqual(identity);
    }
    expect(identity).toHaveLength(16);
  });

  test('whose data has a time of its own keeps it, and the text of its numbers', () => {
    const text = JSON.stringify({ ...event, data: { ...event.data, at: '2025-01-01T00:00:00Z' } }).replace(
      '1.5',
      '1.50',
    );
    const { line } = lineOfCloudEvent(readStructuredEvent(parseJson(text)));
    expect(JSON.parse(line).at).toBe('2025-01-01T00:00:00Z');
    expect(line).toContain('"total":1.50');
  });

  test('may have its data in base64', () => {
    const { data, ...rest } = event;
    const data_base64 = Buffer.from(JSON.stringify(data)).toString('base64');
    expect(lineOf({ ...rest, data_base64 })).toEqual(lineOf(event));
  });

  test.each([
    [{ specversion: '0.3' }, 'has a "specversion" that is not 1.0'],
    [{ id: '' }, 'has no "id"'],
    [{ source: null }, 'has no "source"'],
    [{ type: undefined }, 'has no "type"'],
    [{ datacontenttype: 'application/xml' }, 'has "data" that is not JSON ("datacontenttype")'],
    [{ data: undefined }, 'has no "data"'],
    [{ data: 'text' }, 'has "data" that is no JSON object'],
    [{ actor: ['Jane'] }, 'has an attribute "actor" that is an array'],
    [{ actorid: { a: 1 } }, 'has an attribute "actorid" that is an object'],
    [{ onbehalfofname: {} }, 'has an attribute "onbehalfofname" that is an object'],
    [{ onbehalfofid: [] }, 'has an attribute "onbehalfofid" that is an array'],
    [{ correlationid: { a: 1 } }, 'has an attribute "correlationid" that is an object'],
  ])('with %j is refused: %s', (members, message) => {
    expect(() => lineOf({ ...event, ...members })).toThrow(message);
  });

  test('has the text of an attribute that is a number, and no other use of one that is an object', () => {
    const { line } = lineOf({ ...event, actorid: 17, extension: { a: 1 }, onbehalfofid: null });
    expect(JSON.parse(line)).toEqual({ ...event.data, at: event.time, actorId: '17' });
  });

  test.each(['application/json; charset=utf-8', 'application/vnd.shop+json', 'text/json'])(
    'may have data of %s',
    (type) => {
      expect(lineOf({ ...event, datacontenttype: type }).line).toBe(lineOf(event).line);
    },
  );
});

describe('in binary mode', () => {
  const { data, ...attributes } = event;
  const headers = Object.entries(attributes).map(([name, value]): [string, string] => [`ce-${name}`, value]);

  test('the attributes are headers and the body is the data', () => {
    const read = readBinaryEvent([...headers, ['content-type', 'application/json']], JSON.stringify(data));
    expect(lineOfCloudEvent(read)).toEqual(lineOf(event));
  });

  test('values are percent-decoded, and a quoted one is without its quotes', () => {
    const source = '/sh%C3%B6p%20%22x%22';
    const read = (value: string) =>
      readBinaryEvent([...headers, ['CE-Source', value]], JSON.stringify(data)).attributes.get('source');
    expect(read(source)).toBe('/shöp "x"');
    expect(read('"/a%25b"')).toBe('/a%b');
    expect(read('100%')).toBe('100%');
    expect(() => read('%FF')).toThrow('not UTF-8');
  });

  test('a body that is no JSON is refused without its content', () => {
    expect(() => readBinaryEvent(headers, '{"secret')).toThrow(/^has "data" that cannot be read as JSON: [^"]*$/);
  });
});
