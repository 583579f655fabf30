import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { maxDocument, sizeOfJson } from '../../../src/core/json/measure.ts';
import { parseJson } from '../../../src/core/json/parse.ts';
import { applyPatch, maxPatchedLevels } from '../../../src/core/json/patch.ts';
import { PatchFault, type PatchOperation, parsePointer } from '../../../src/core/json/patch-operation.ts';
import { trials } from '../../support/oracle/trials.ts';
import { CopyingPatch } from './copying-patch.ts';

const value = (text: string) => parseJson(text);

function outcomeOf(document: string, operations: readonly PatchOperation[]): string {
  try {
    return applyPatch(parseJson(document), operations);
  } catch (error) {
    if (error instanceof PatchFault) return `${error.index} ${error.reason} ${error.at}`;
    throw error;
  }
}

test('the order of members and the text of values stay, also of keys that look like numbers', () => {
  const document = '{"10":1.10,"2":{"b":1E400,"a":[-0,"\\u00e9"]},"__proto__":1}';
  const operations: PatchOperation[] = [
    { op: 'replace', path: ['2', 'a', '0'], value: value('0.0') },
    { op: 'add', path: ['1'], value: value('[ 1 ]') },
    { op: 'add', path: ['10'], value: value('2.50') },
  ];
  expect(applyPatch(parseJson(document), operations)).toBe(
    '{"10":2.50,"2":{"b":1E400,"a":[0.0,"\\u00e9"]},"__proto__":1,"1":[1]}',
  );
});

test('a copy and its source change apart from each other', () => {
  const operations: PatchOperation[] = [
    { op: 'replace', path: ['a', 'x', '0'], value: value('1') },
    { op: 'copy', from: ['a'], path: ['b'] },
    { op: 'replace', path: ['b', 'x', '0'], value: value('2') },
    { op: 'add', path: ['a', 'y'], value: value('3') },
  ];
  expect(applyPatch(parseJson('{"a":{"x":[0]}}'), operations)).toBe('{"a":{"x":[1],"y":3},"b":{"x":[2]}}');
});

test('a fault tells which operation it was, why, and which of its paths', () => {
  const failing: [PatchOperation, string][] = [
    [{ op: 'add', path: ['x', 'y'], value: value('1') }, 'no place path'],
    [{ op: 'add', path: ['l', '3'], value: value('1') }, 'beyond path'],
    [{ op: 'remove', path: ['x'] }, 'nothing path'],
    [{ op: 'remove', path: [] }, 'document path'],
    [{ op: 'copy', from: ['l', '2'], path: ['x'] }, 'nothing from'],
    [{ op: 'move', from: ['a', 'b', 'c'], path: ['x'] }, 'no place from'],
    [{ op: 'move', from: ['l'], path: ['l', '0'] }, 'into itself path'],
    [{ op: 'test', path: ['l'], value: value('[1,3]') }, 'test failed path'],
  ];
  for (const [operation, fault] of failing) {
    const first: PatchOperation = { op: 'test', path: ['a'], value: value('1') };
    expect(outcomeOf('{"a":1,"l":[1,2]}', [first, operation])).toBe(`1 ${fault}`);
  }
});

describe('a document is refused before it grows beyond', () => {
  const room = maxDocument.bytes - '{"a":"","l":[]}'.length;
  const texts: [string, (free: number) => [document: string, operations: PatchOperation[]]][] = [
    ['a new member', (free) => [filled(free - 4), [{ op: 'add', path: ['b'], value: value('""') }]]],
    ['a member that is replaced', (free) => [filled(0), [{ op: 'add', path: ['a'], value: text(free + 5) }]]],
    ['an element', (free) => [filled(free + 5), [{ op: 'add', path: ['l', '-'], value: value('""') }]]],
  ];
  function filled(length: number): string {
    return JSON.stringify({ a: 'x'.repeat(length), l: [] });
  }
  function text(length: number) {
    return value(JSON.stringify('x'.repeat(length - 5)));
  }

  test.each(texts)('%s, in bytes', (_name, make) => {
    const used = (free: number) => {
      const [document, operations] = make(free);
      return outcomeOf(document, operations);
    };
    // From below the limit to above it: what is accepted has at most the limit, what is refused would have more.
    const sizes = Array.from({ length: 10 }, (_, index) => room - 8 + index).map(used);
    const accepted = sizes.filter((outcome) => outcome.startsWith('{')).map((outcome) => Buffer.byteLength(outcome));
    expect(Math.max(...accepted)).toBe(maxDocument.bytes);
    const refused = sizes.filter((outcome) => !outcome.startsWith('{'));
    expect(new Set(refused)).toEqual(new Set(['0 too many bytes path']));
    expect(accepted.length).toBeGreaterThan(0);
  });

  test('a copy, in bytes', () => {
    // {"a":"…","b":"…"} with both texts of one length, and one character more in the key.
    const half = (maxDocument.bytes - '{"a":"","b":""}'.length) / 2;
    const copied = (length: number, key: string) =>
      outcomeOf(JSON.stringify({ a: 'x'.repeat(length) }), [{ op: 'copy', from: ['a'], path: [key] }]);
    const whole = copied(Math.floor(half), half % 1 === 0 ? 'b' : 'bb');
    expect(Buffer.byteLength(whole)).toBe(maxDocument.bytes);
    expect(copied(Math.floor(half), half % 1 === 0 ? 'bb' : 'bbb')).toBe('0 too many bytes path');
  });

  test('in values, whatever they are', () => {
    const list = (count: number, of: string) => `{"l":[${Array(count).fill(of).join()}],"s":${of}}`;
    for (const [of, each] of [
      ['0', 1],
      ['{}', 1],
      ['[{},[]]', 3],
    ] as const) {
      const copy: PatchOperation[] = [{ op: 'copy', from: ['s'], path: ['l', '0'] }];
      const fits = Math.floor((maxDocument.values - 2) / each) - 2;
      expect(outcomeOf(list(fits, of), copy)).toMatch(/^\{/);
      expect(outcomeOf(list(fits + 1, of), copy)).toBe('0 too many values path');
    }
  });

  test('in levels, wherever it grows', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    const added = (levels: number) =>
      outcomeOf('{"a":{}}', [{ op: 'add', path: ['a', 'b'], value: value(nested(levels)) }]);
    expect(added(maxPatchedLevels - 2)).toMatch(/^\{"a"/);
    expect(added(maxPatchedLevels - 1)).toBe('0 too deep path');
    const copied = (levels: number) =>
      outcomeOf(`{"a":${nested(levels)},"b":{}}`, [{ op: 'copy', from: ['a'], path: ['b', 'c'] }]);
    expect(copied(maxPatchedLevels - 2)).toMatch(/^\{"a"/);
    expect(copied(maxPatchedLevels - 1)).toBe('0 too deep path');
  });

  test('a small patch that copies a document into itself again and again stops at once', () => {
    const operations: PatchOperation[] = [{ op: 'add', path: ['a'], value: value('{}') }];
    for (let index = 0; index < 40; index += 1) operations.push({ op: 'copy', from: [], path: ['a', String(index)] });
    const [fault, reason] = outcomeOf('{}', operations).split(/ (.*)/);
    // Each copy doubles what there is: 2, 4, 8 …
    expect(Number(fault)).toBeLessThan(20);
    expect(reason).toBe('too many values path');
  });

  test('what is too large already may become smaller', () => {
    const document = JSON.stringify({ a: 'x'.repeat(maxDocument.bytes), b: 'y'.repeat(100) });
    expect(outcomeOf(document, [{ op: 'replace', path: ['b'], value: value('1') }])).toMatch(/^\{/);
    expect(outcomeOf(document, [{ op: 'add', path: ['c'], value: value('1') }])).toBe('0 too many bytes path');
  });

  test.each([
    ['values', Array(99_000).fill(0)],
    ['bytes', 'x'.repeat(1_000_000)],
  ])('what is moved, copied and added in all has a limit too, in %s', (_name, a) => {
    const document = JSON.stringify({ a });
    const moves = (count: number): PatchOperation[] =>
      Array.from({ length: count }, (_, index) => ({
        op: 'move',
        from: [index % 2 === 0 ? 'a' : 'b'],
        path: [index % 2 === 0 ? 'b' : 'a'],
      }));
    expect(outcomeOf(document, moves(4))).toMatch(/^\{"a"/);
    expect(outcomeOf(document, moves(5))).toBe('4 too much moved path');
  });
});

test('a patch that begins with tests of what is there, and puts it back, changes nothing but the order', async () => {
  const document = fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true, minKeys: 1 });
  await fc.assert(
    fc.property(document, fc.nat(), (members, pick) => {
      const text = JSON.stringify(members);
      const keys = Object.keys(JSON.parse(text));
      const key = keys[pick % keys.length] ?? '';
      const member = parseJson(JSON.stringify(members[key]));
      const operations: PatchOperation[] = [
        { op: 'test', path: [], value: parseJson(text) },
        { op: 'copy', from: [], path: ['\0 copy'] },
        { op: 'remove', path: [key] },
        { op: 'move', from: ['\0 copy', key], path: [key] },
        { op: 'test', path: [key], value: member },
        { op: 'remove', path: ['\0 copy'] },
        { op: 'test', path: [], value: parseJson(text) },
      ];
      const patched = applyPatch(parseJson(text), operations);
      expect(JSON.parse(patched)).toEqual(JSON.parse(text));
      expect(sizeOfJson(parseJson(patched)).bytes).toBe(Buffer.byteLength(text));
    }),
    { numRuns: trials(50) },
  );
});

test('values that places share behave like copies of their own', async () => {
  const key = fc.constantFrom('a', 'b', 'c', '0', '1', '2', '-');
  const pointer = fc.array(key, { maxLength: 4 });
  const { doc } = fc.letrec<{ doc: unknown; any: unknown }>((tie) => ({
    any: fc.oneof({ maxDepth: 3 }, fc.constantFrom(1, 'x', null), tie('doc'), fc.array(tie('any'), { maxLength: 3 })),
    doc: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('any'), { noNullPrototype: true }),
  }));
  const anyOperation = fc.oneof(
    fc.record({
      op: fc.constantFrom('add', 'replace', 'test'),
      path: pointer,
      value: fc.oneof(doc, fc.constant([{}])),
    }),
    fc.record({ op: fc.constant('remove'), path: pointer }),
    fc.record({ op: fc.constantFrom('copy', 'copy', 'move'), path: pointer, from: pointer }),
  );
  await fc.assert(
    fc.property(doc, fc.array(anyOperation, { maxLength: 40 }), (document, list) => {
      const text = JSON.stringify(document);
      const copying = new CopyingPatch(text);
      const passed: PatchOperation[] = [];
      for (const candidate of list) {
        const operation = {
          ...candidate,
          ...('value' in candidate && { value: value(JSON.stringify(candidate.value)) }),
        } as PatchOperation;
        if (copying.apply(candidate)) passed.push(operation);
        else expect(outcomeOf(text, [...passed, operation])).toMatch(new RegExp(`^${passed.length} `));
      }
      expect(outcomeOf(text, passed)).toBe(copying.text());
    }),
    { numRuns: trials(100) },
  );
});

test('a pointer is read as RFC 6901 has it', () => {
  expect(parsePointer('')).toEqual([]);
  expect(parsePointer('/a~1b/~0~01/')).toEqual(['a/b', '~~1', '']);
  for (const wrong of ['a', '/~', '/~2', 'a/b']) expect(parsePointer(wrong)).toBeUndefined();
});
