import { describe, expect, test } from 'vitest';
import { JsonTape } from '../../src/core/json/tape.ts';
import type { Change } from '../../src/recording/change.ts';
import { readImportLine } from '../../src/recording/mapping/import-line.ts';
import { Occurrences } from '../../src/recording/occurrences.ts';

const tape = new JsonTape();
const read = (line: string | Buffer, occurrences = new Occurrences()) =>
  readImportLine(Buffer.from(line), tape, occurrences);

function changeOf(line: string, occurrences?: Occurrences): Change {
  const result = read(line, occurrences);
  if (result.kind !== 'change') throw new Error(JSON.stringify(result));
  return result.change;
}

const reasonOf = (line: string | Buffer) => {
  const result = read(line);
  return result.kind === 'rejected' ? result.reason : result.kind;
};

/** A context of so many levels. */
const nested = (levels: number): unknown => (levels === 1 ? { a: 1 } : { a: nested(levels - 1) });

const required = { op: 'insert', entity: 'order', entityId: '1', at: '2024-05-06T07:08:09.1239Z' };
const lineWith = (members: object) => JSON.stringify({ ...required, ...members });

describe('a good line', () => {
  test('may have a context of 4,096 bytes and 4 levels, which is kept as it was written', () => {
    const deep = `{ "a": 1.10, "b": ${JSON.stringify(nested(3))} }`;
    expect(changeOf(lineWith({}).replace('{', `{"context":${deep},`)).context).toBe(deep.replaceAll(' ', ''));
    const context = { a: 'x'.repeat(4088) };
    expect(changeOf(lineWith({ context })).context).toBe(JSON.stringify(context));
    expect(changeOf(lineWith({ context: null }))).not.toHaveProperty('context');
  });

  test('may name masked values that differ: only those that are masked count', () => {
    const sides = (last: number) => ({ a: '********', b: [{ 'c.d': '********', e: '********' }], f: 1, last });
    const line = (masked: unknown, last = 1) =>
      lineWith({ op: 'update', before: sides(1), after: sides(last), masked });
    const pathsOf = (masked: unknown) => Object.keys(JSON.parse(changeOf(line(masked, 2)).paths));
    expect(pathsOf(undefined)).toEqual(['last']);
    expect(pathsOf([String.raw`b.0.c\.d`, 'f', 'none', 'a.x'])).toEqual([String.raw`b.0.c\.d`, 'last']);
    expect(pathsOf(['b.0.e', 'b.0.x'])).toEqual(['b.0.e', 'last']);
    // Where every value of an array differs, the path is that of the whole array.
    expect(pathsOf(['b'])).toEqual(['b', 'last']);
    expect(pathsOf([''])).toEqual(['a', 'b', 'last']);
    expect(reasonOf(line(['f']))).toBe('unchanged');
    expect(reasonOf(line('a'))).toBe('"masked" is no array');
    expect(reasonOf(line([1]))).toBe('"masked.0" is no string');
    expect(reasonOf(line(['a'.repeat(1_000)]))).toBe('unchanged');
    expect(reasonOf(line(['a'.repeat(1_001)]))).toBe('"masked" is too long');
    const most = ['a'.repeat(536), ...Array.from({ length: 65 }, () => 'a'.repeat(1_000))];
    expect(reasonOf(line(most))).toBe('unchanged');
    expect(reasonOf(line([...most, 'a']))).toBe('"masked" is too long');
  });

  test('has all that a change needs', () => {
    const line = lineWith({
      id: 'x',
      name: 'Order 1',
      actor: 'Jane Doe',
      schemaVersion: '2',
      related: [{ entity: 'customer', entityId: '7' }],
      after: { a: 1 },
    });
    expect(changeOf(line)).toEqual({
      identity: expect.any(Uint8Array),
      at: Date.UTC(2024, 4, 6, 7, 8, 9, 123),
      type: 'create',
      entity: 'order',
      entityId: '1',
      name: 'Order 1',
      actor: 'Jane Doe',
      schemaVersion: '2',
      related: [{ entity: 'customer', entityId: '7' }],
      paths: '{"a":{"after":1}}',
    });
    expect(changeOf(line).identity).toHaveLength(16);
  });

  test('without the optional members has the actor unknown and nothing else', () => {
    const { identity, ...change } = changeOf(lineWith({}));
    expect(change).toEqual({
      at: Date.UTC(2024, 4, 6, 7, 8, 9, 123),
      type: 'create',
      entity: 'order',
      entityId: '1',
      actor: 'unknown',
      related: [],
      paths: '{}',
    });
    const absent = { id: null, name: null, actor: null, schemaVersion: null, related: null };
    const { identity: other, ...withNull } = changeOf(lineWith(absent));
    expect(withNull).toEqual(change);
    expect(other).not.toEqual(identity);
  });

  test.each([
    ['insert', 'create', '{"a":{"after":2}}'],
    ['create', 'create', '{"a":{"after":2}}'],
    ['update', 'update', '{"a":{"before":1,"after":2}}'],
    ['replace', 'update', '{"a":{"before":1,"after":2}}'],
    ['delete', 'delete', '{"a":{"before":1}}'],
  ])('of %s is a %s, with the sides that it has', (op, type, paths) => {
    expect(changeOf(lineWith({ op, before: { a: 1 }, after: { a: 2 } }))).toMatchObject({ type, paths });
  });

  test('of an update that came without before has after only, and without after before only', () => {
    expect(changeOf(lineWith({ op: 'update', after: { a: 2 } })).paths).toBe('{"a":{"after":2}}');
    expect(changeOf(lineWith({ op: 'update', before: { a: 2 } })).paths).toBe('{"a":{"before":2}}');
    expect(changeOf(lineWith({ op: 'update' })).paths).toBe('{}');
    expect(changeOf(lineWith({ op: 'update', before: null, after: 1 })).paths).toBe('{"":{"before":null,"after":1}}');
  });

  test('keys of the line may be written with escapes, and the last of duplicate keys counts', () => {
    const line = String.raw`{"op":"x","\u006fp":"insert","entity":"o","entityId":"1","at":"2024-05-06T07:08:09Z"}`;
    expect(changeOf(line).type).toBe('create');
  });
});

describe('an update that changes nothing', () => {
  test.each(['update', 'replace'])('of %s is unchanged, however its documents are written', (op) => {
    const line = lineWith({ op }).replace(
      /\}$/,
      String.raw`,"before":{"a":1.0,"b":["x"]},"after":{"b":[ "\u0078" ],"a":10e-1}}`,
    );
    expect(read(line)).toEqual({ kind: 'unchanged' });
  });

  test('is no insert, no delete, and none whose before is missing', () => {
    expect(read(lineWith({ before: 1, after: 1 })).kind).toBe('change');
    expect(read(lineWith({ op: 'delete', before: 1, after: 1 })).kind).toBe('change');
    expect(read(lineWith({ op: 'update', after: 1 })).kind).toBe('change');
  });
});

describe('identity', () => {
  test('is that of the id, whatever else the line says', () => {
    const expected = changeOf(lineWith({ id: 'a', after: 1 })).identity;
    expect(changeOf(lineWith({ id: 'a', after: 2, name: 'n' })).identity).toEqual(expected);
    expect(changeOf(lineWith({ id: 'b', after: 1 })).identity).not.toEqual(expected);
  });

  test('without an id is that of the line and of how often it came before', () => {
    const ofRun = () => {
      const occurrences = new Occurrences();
      return [1, 1, 2, 1].map((after) =>
        Buffer.from(changeOf(lineWith({ after }), occurrences).identity).toString('hex'),
      );
    };
    expect(new Set(ofRun()).size).toBe(4);
    expect(ofRun()).toEqual(ofRun());
  });

  test('an id that says what a line hashes to is another one', () => {
    const line = lineWith({ after: 1 });
    expect(changeOf(lineWith({ id: line })).identity).not.toEqual(changeOf(line).identity);
  });
});

describe('a bad line is rejected', () => {
  test.each([
    ['{', /^cannot be read as JSON: expected a key in quotes, but the text ends at character 2$/],
    ['[]', /^is no JSON object$/],
    ['"text"', /^is no JSON object$/],
    [lineWith({ op: undefined }), /^"op" is missing$/],
    [lineWith({ op: 'INSERT' }), /^"op" is not insert, create, update, replace or delete$/],
    [lineWith({ op: 'toString' }), /^"op" is not insert/],
    [lineWith({ entity: undefined }), /^"entity" is missing$/],
    [lineWith({ entity: '' }), /^"entity" is empty$/],
    [lineWith({ entity: null }), /^"entity" is no string$/],
    [lineWith({ entityId: 5 }), /^"entityId" is no string$/],
    [lineWith({ entityId: 'a\0b' }), /^"entityId" has a NUL character$/],
    [lineWith({ entityId: '\ud800' }), /^"entityId" has a lone surrogate$/],
    [lineWith({ at: undefined }), /^"at" is missing$/],
    [lineWith({ at: 1714979289123 }), /^"at" is no string$/],
    [lineWith({ at: 'yesterday' }), /^"at" is no RFC 3339 time/],
    [lineWith({ at: '2101-01-01T00:00:00Z' }), /^"at" is not from 1970 to 2100$/],
    [lineWith({ id: 7 }), /^"id" is no string$/],
    [lineWith({ id: '' }), /^"id" is empty$/],
    [lineWith({ name: {} }), /^"name" is no string$/],
    [lineWith({ actor: '\udc00' }), /^"actor" has a lone surrogate$/],
    [lineWith({ schemaVersion: 1 }), /^"schemaVersion" is no string$/],
    [lineWith({ context: [] }), /^"context" is no object$/],
    [lineWith({ context: nested(5) }), /^"context" has more than 4 levels$/],
    [lineWith({ context: { a: 'x'.repeat(4089) } }), /^"context" has more than 4096 bytes$/],
    [lineWith({ related: {} }), /^"related" is no array$/],
    [lineWith({ related: [{ entity: 'a', entityId: 'b' }, 'x'] }), /^"related\.1" is no object$/],
    [lineWith({ related: [{ entity: 'a' }] }), /^"related\.0\.entityId" is missing$/],
    [lineWith({ related: [{ entity: '\0', entityId: 'b' }] }), /^"related\.0\.entity" has a NUL character$/],
  ])('%s', (line, reason) => {
    expect(reasonOf(line)).toMatch(reason);
  });

  test('that is no UTF-8', () => {
    const line = Buffer.from(lineWith({ name: 'é' }), 'latin1');
    expect(reasonOf(line)).toBe('is no UTF-8');
  });

  test('without quoting its content', () => {
    const secret = 'hunter2';
    const lines = [
      lineWith({ op: secret, after: { token: secret } }),
      lineWith({ at: secret }),
      lineWith({ after: secret }).slice(0, -1),
      `${lineWith({ after: 1 })}${secret}`,
      lineWith({ [secret]: 1, related: [secret] }),
    ];
    for (const line of lines) expect(reasonOf(line)).not.toContain(secret);
  });
});

describe('limits', () => {
  test.each(['id', 'name', 'actor', 'schemaVersion', 'entity', 'entityId'])(
    '%s has at most 1,000 characters',
    (member) => {
      expect(read(lineWith({ [member]: 'x'.repeat(1000) })).kind).toBe('change');
      expect(reasonOf(lineWith({ [member]: 'x'.repeat(1001) }))).toBe(`"${member}" has more than 1000 characters`);
      expect(read(lineWith({ [member]: '😀'.repeat(1000) })).kind).toBe('change');
      expect(reasonOf(lineWith({ [member]: `${'😀'.repeat(1000)}x` }))).toBe(
        `"${member}" has more than 1000 characters`,
      );
    },
  );

  test('with a member that is not known, which its reason names', () => {
    expect(reasonOf(lineWith({ usr: 'x' }))).toBe('"usr" is not a member of a change');
    expect(reasonOf(lineWith({ op: 'update', before: 1, after: 1, reason: null }))).toBe(
      '"reason" is not a member of a change',
    );
    expect(reasonOf(lineWith({ related: [{ entity: 'e', entityId: '1', name: 'n' }] }))).toBe(
      '"related.0.name" is not a member of a related item',
    );
    expect(reasonOf(lineWith({ ['x'.repeat(5_000)]: 1 }))).toBe(`"${'x'.repeat(200)}" is not a member of a change`);
  });

  test('related ids have at most 1,000 characters', () => {
    expect(read(lineWith({ related: [{ entity: 'e', entityId: 'x'.repeat(1000) }] })).kind).toBe('change');
    expect(reasonOf(lineWith({ related: [{ entity: 'e', entityId: 'x'.repeat(1001) }] }))).toMatch(/more than 1000/);
  });

  test.each(['before', 'after'])('%s nests 10,000 levels deep and no deeper', (side) => {
    const nest = (depth: number) =>
      lineWith({ op: 'update' }).replace(/\}$/, `,"${side}":${'['.repeat(depth)}${']'.repeat(depth)}}`);
    expect(changeOf(nest(10_000)).paths).toHaveLength(`{"":{"${side}":}}`.length + 20_000);
    expect(reasonOf(nest(10_001))).toMatch(/^cannot be read as JSON: nested too deep/);
  });

  test('a document of 10,000 levels is compared with another', () => {
    const nest = (leaf: number) => `${'{"a":['.repeat(4999)}{"b":${leaf}}${']}'.repeat(4999)}`;
    const line = lineWith({ op: 'update' }).replace(/\}$/, `,"before":${nest(1)},"after":${nest(2)}}`);
    expect(changeOf(line).paths).toBe(`{"${'a.0.'.repeat(4999)}b":{"before":1,"after":2}}`);
  });

  test('paths that would not fit into 128 MiB are refused before they are written', () => {
    const depth = 5000;
    const key = 'k'.repeat(100);
    const after = `${`{"${key}":{"x":1,"y":2,"z":`.repeat(depth)}1${'}}'.repeat(depth)}`;
    const line = lineWith({}).replace(/\}$/, `,"after":${after}}`);
    expect(reasonOf(line)).toBe('its paths would take more than 128 MiB');
  });
});
