import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { maxOperations, patchDocument } from '../../../src/tenants/custom-entities/patch-document.ts';

function patch(document: unknown, operations: unknown): unknown {
  return JSON.parse(patchDocument(JSON.stringify(document), JSON.stringify(operations)));
}

function refusalOf(document: unknown, operations: unknown): AnnalsError {
  try {
    patchDocument(JSON.stringify(document), typeof operations === 'string' ? operations : JSON.stringify(operations));
  } catch (error) {
    if (error instanceof AnnalsError) return error;
    throw error;
  }
  throw new Error(`this can be applied: ${JSON.stringify(operations)}`);
}

// The examples of RFC 6902, appendix A, in words and values of our own, and the corners its text tells of.
describe('RFC 6902', () => {
  test.each<[string, unknown, unknown[], unknown]>([
    ['add a member', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    ['add replaces what is there', { a: 1 }, [{ op: 'add', path: '/a', value: [] }], { a: [] }],
    ['add into an array shifts the rest', { a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
    ['add at the length of an array', { a: [1] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2] }],
    ['- is the end of an array', { a: [1] }, [{ op: 'add', path: '/a/-', value: [2] }], { a: [1, [2]] }],
    ['- is a key of an object', { a: {} }, [{ op: 'add', path: '/a/-', value: 1 }], { a: { '-': 1 } }],
    ['add null', {}, [{ op: 'add', path: '/a', value: null }], { a: null }],
    ['remove a member', { a: 1, b: null }, [{ op: 'remove', path: '/b' }], { a: 1 }],
    ['remove an element', { a: [1, 2, 3] }, [{ op: 'remove', path: '/a/1' }], { a: [1, 3] }],
    ['replace', { a: [1, { b: 2 }] }, [{ op: 'replace', path: '/a/1/b', value: 'x' }], { a: [1, { b: 'x' }] }],
    ['replace the document', { a: 1 }, [{ op: 'replace', path: '', value: { b: 1 } }], { b: 1 }],
    ['move a member', { a: { b: 1 }, c: {} }, [{ op: 'move', from: '/a/b', path: '/c/d' }], { a: {}, c: { d: 1 } }],
    ['move within an array', { a: [1, 2, 3] }, [{ op: 'move', from: '/a/0', path: '/a/2' }], { a: [2, 3, 1] }],
    ['move to where it is', { a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 }],
    [
      'the target of a move is found once the value is gone',
      { a: [1, { b: 2 }] },
      [{ op: 'move', from: '/a/0', path: '/a/0/c' }],
      { a: [1, { b: 2 }] },
    ],
    [
      'copy',
      { a: { b: [1] } },
      [
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'add', path: '/c/b/-', value: 2 },
      ],
      { a: { b: [1] }, c: { b: [1, 2] } },
    ],
    [
      'escapes',
      { 'a/b': 1, 'm~n': 2, '': 3, '~1': 4 },
      [
        { op: 'remove', path: '/a~1b' },
        { op: 'remove', path: '/m~0n' },
        { op: 'replace', path: '/', value: 0 },
        { op: 'remove', path: '/~01' },
      ],
      { '': 0 },
    ],
    ['unknown members of an operation are ignored', {}, [{ op: 'add', path: '/a', value: 1, more: 2 }], { a: 1 }],
    ['an empty patch', { a: 1 }, [], { a: 1 }],
  ])('%s', (name, document, operations, expected) => {
    if (name.startsWith('the target of a move')) {
      expect(refusalOf(document, operations).status).toBe(400);
    } else {
      expect(patch(document, operations)).toEqual(expected);
    }
  });

  test.each<[string, unknown, unknown]>([
    ['numbers by value', { a: [1.0, '1'] }, '[{"op":"test","path":"/a","value":[1e0,"1"]}]'],
    ['strings by their characters', { a: 'é' }, '[{"op":"test","path":"/a","value":"\\u00e9"}]'],
    ['members in any order', { a: { b: 1, c: null } }, '[{"op":"test","path":"/a","value":{"c":null,"b":1}}]'],
    ['the document', { a: 1 }, '[{"op":"test","path":"","value":{"a":1}}]'],
  ])('test compares %s', (_name, document, operations) => {
    expect(JSON.parse(patchDocument(JSON.stringify(document), String(operations)))).toEqual(document);
  });

  test.each<[string, unknown]>([
    ['another value', { op: 'test', path: '/a', value: 2 }],
    ['another type', { op: 'test', path: '/a', value: '1' }],
    ['more members', { op: 'test', path: '/o', value: { x: 1, y: 2 } }],
    ['fewer elements', { op: 'test', path: '/l', value: [1] }],
    ['an array for an object', { op: 'test', path: '/l', value: { 0: 1, 1: 2 } }],
  ])('a test that fails, of %s, is a conflict', (_name, operation) => {
    const error = refusalOf({ a: 1, o: { x: 1 }, l: [1, 2] }, [operation]);
    expect([error.status, error.type]).toEqual([409, 'conflict_resource']);
  });

  test.each<[string, unknown]>([
    ['no array', { op: 'add', path: '/b', value: 1 }],
    ['an operation that is none', [7]],
    ['an unknown operation', [{ op: 'merge', path: '/b' }]],
    ['an operation in capitals', [{ op: 'ADD', path: '/b', value: 1 }]],
    ['no path', [{ op: 'add', value: 1 }]],
    ['a path without its slash', [{ op: 'add', path: 'b', value: 1 }]],
    ['a path with an escape that is none', [{ op: 'add', path: '/b~2', value: 1 }]],
    ['no value', [{ op: 'add', path: '/b' }]],
    ['no from', [{ op: 'move', path: '/b' }]],
    ['add below nothing', [{ op: 'add', path: '/x/y', value: 1 }]],
    ['add below a leaf', [{ op: 'add', path: '/a/y', value: 1 }]],
    ['add beyond the end', [{ op: 'add', path: '/l/3', value: 1 }]],
    ['an index with a zero before it', [{ op: 'replace', path: '/l/01', value: 1 }]],
    ['an index below zero', [{ op: 'replace', path: '/l/-1', value: 1 }]],
    ['an index that is a word', [{ op: 'remove', path: '/l/length' }]],
    ['- where something has to be', [{ op: 'remove', path: '/l/-' }]],
    ['remove what is not there', [{ op: 'remove', path: '/x' }]],
    ['remove what all objects have', [{ op: 'remove', path: '/toString' }]],
    ['copy the length of a text', [{ op: 'copy', from: '/s/length', path: '/x' }]],
    ['replace what is not there', [{ op: 'replace', path: '/x', value: 1 }]],
    ['test what is not there', [{ op: 'test', path: '/x', value: null }]],
    ['move into itself', [{ op: 'move', from: '/o', path: '/o/x' }]],
    ['remove the document', [{ op: 'remove', path: '' }]],
    [`more than ${maxOperations} operations`, Array(maxOperations + 1).fill({ op: 'add', path: '/b', value: 1 })],
  ])('%s is 400', (_name, operations) => {
    const error = refusalOf({ a: 1, s: 'text', o: {}, l: [1, 2] }, operations);
    expect([error.status, error.type]).toEqual([400, 'validation_violation']);
  });
});

test(`a patch may have ${maxOperations} operations`, () => {
  const operations = Array(maxOperations).fill({ op: 'add', path: '/b', value: 1 });
  expect(patch({ a: 1 }, operations)).toEqual({ a: 1, b: 1 });
});

test('all operations are applied or none', () => {
  const document = '{"a":1}';
  expect(() => patchDocument(document, '[{"op":"add","path":"/b","value":1},{"op":"remove","path":"/c"}]')).toThrow(
    AnnalsError,
  );
  expect(document).toBe('{"a":1}');
});

test('keys that mean something to JavaScript are data', () => {
  const document = '{"__proto__":{"x":1},"constructor":{"prototype":1},"__proto__^":2}';
  expect(
    patchDocument(
      document,
      '[{"op":"add","path":"/__proto__/y","value":2},{"op":"replace","path":"/constructor/prototype","value":3}]',
    ),
  ).toBe('{"__proto__":{"x":1,"y":2},"constructor":{"prototype":3},"__proto__^":2}');
  expect(patchDocument('{}', '[{"op":"add","path":"/__proto__","value":{"polluted":1}}]')).toBe(
    '{"__proto__":{"polluted":1}}',
  );
  expect(patchDocument('{}', '[{"op":"add","path":"/a","value":{"__proto__":{"b":1}}}]')).toBe(
    '{"a":{"__proto__":{"b":1}}}',
  );
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
});

test('values that are not touched keep their text', () => {
  expect(
    patchDocument('{"a":1.10,"b":[9007199254740993,1e400],"c":"\\u00e9"}', '[{"op":"move","from":"/a","path":"/b/0"}]'),
  ).toBe('{"b":[1.10,9007199254740993,1e400],"c":"\\u00e9"}');
});

test('a patch that copies a document into itself again and again is stopped', () => {
  const doubling = Array.from({ length: 60 }, (_, index) => ({ op: 'copy', from: '', path: `/c${index}` }));
  expect(refusalOf({ a: 'x'.repeat(1000) }, doubling).status).toBe(413);
  const deeper = Array.from({ length: 120 }, () => ({ op: 'copy', from: '', path: '/c' }));
  expect(refusalOf({ a: 1 }, deeper).status).toBe(400);
});

test('to add what is there and take it away again changes nothing', async () => {
  await fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }),
      fc.string(),
      fc.jsonValue(),
      (document, key, value) => {
        fc.pre(!Object.hasOwn(document, key));
        const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        const text = JSON.stringify(document);
        const added = patchDocument(
          text,
          JSON.stringify([
            { op: 'add', path, value },
            { op: 'test', path, value },
          ]),
        );
        expect(JSON.parse(patchDocument(added, JSON.stringify([{ op: 'remove', path }])))).toEqual(JSON.parse(text));
      },
    ),
  );
});

test('a patch has at most 1,000 operations', () => {
  const operations = Array.from({ length: 1_000 }, (_, n) => ({ op: 'add', path: '/n', value: n }));
  expect(patch({}, operations)).toEqual({ n: 999 });
  expect(refusalOf({}, [...operations, ...operations.slice(0, 1)])).toMatchObject({
    status: 400,
    message: 'A patch has at most 1000 operations.',
  });
});
