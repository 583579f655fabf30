import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  advance,
  finish,
  finishInSlices,
  JsonNumber,
  parseJson,
  parseJsonSteps,
  stringifyJson,
  stringifyJsonSteps,
  toPlain,
} from '../../clients/typescript/src/json/index.ts';
import { parseJson as parseOfService } from '../../src/core/json/parse.ts';
import { compactText } from '../../src/core/json/text.ts';
import { anyCharacter } from '../support/oracle/any-character.ts';
import { seed } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';

const number = fc.constantFrom(
  '0',
  '-0',
  '1.10',
  '1E400',
  '1e+2',
  '9007199254740993',
  '-0.0e-7',
  '12345678901234567890',
);
const key = fc.constantFrom(
  '10',
  '2',
  '1',
  'a',
  '__proto__',
  'constructor',
  '',
  'é',
  '😀',
  'a"b',
  'a\\b',
  '\u0000',
  'x.y',
);
const { tree } = fc.letrec<{ tree: string }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.oneof(
      number,
      fc.constantFrom('null', 'true', 'false'),
      fc.string({ unit: anyCharacter }).map((text) => JSON.stringify(text)),
    ),
    fc.array(tie('tree'), { maxLength: 4 }).map((parts) => `[ ${parts.join(' ,\n')} ]`),
    fc
      .uniqueArray(fc.tuple(key, tie('tree')), { maxLength: 4, selector: ([name]) => name })
      .map((members) => `{${members.map(([name, value]) => `\t${JSON.stringify(name)} : ${value}`).join(',')}}`),
  ),
}));

test('what is read and written again is what the service itself makes of the text, to the last digit', () => {
  fc.assert(
    fc.property(tree, (text) => {
      expect(stringifyJson(parseJson(text))).toBe(compactText(parseOfService(text)));
      expect(parseJson(stringifyJson(parseJson(text), 2))).toEqual(parseJson(text));
      expect(toPlain(parseJson(text))).toEqual(JSON.parse(text));
    }),
    { numRuns: trials(150), seed },
  );
});

test('exactly the texts that JSON.parse takes are taken', () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    ' ',
    '"a"',
    '"',
    '\\',
    '1',
    '-',
    '.5',
    'E9',
    '01',
    'null',
    'nul',
    '\u0000',
    '\ufeff',
    '\\u00e9',
    '\\x',
    'é',
  ];
  const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((parts) => parts.join(''));
  const cut = fc.tuple(tree, fc.nat()).map(([text, at]) => text.slice(0, at % (text.length + 1)));
  let taken = 0;
  fc.assert(
    fc.property(fc.oneof(soup, cut), (text) => {
      const accepted = isTaken(() => parseJson(text));
      expect(accepted).toBe(isTaken(() => JSON.parse(text)));
      if (accepted) taken += 1;
    }),
    { numRuns: trials(500), seed },
  );
  expect(taken).toBeGreaterThan(trials(15));
});

test('members keep their order where a plain object would sort them, and of one key the last member counts', () => {
  expect(stringifyJson(parseJson('{"2":1.10,"10":-0,"a":1E400,"1":[1.0]}'))).toBe(
    '{"2":1.10,"10":-0,"a":1E400,"1":[1.0]}',
  );
  expect(stringifyJson(parseJson('{"a":1,"b":2,"a":3}'))).toBe('{"a":3,"b":2}');
});

test('a number is its text, and near enough for arithmetic', () => {
  expect(Number(new JsonNumber('1.10'))).toBe(1.1);
  expect(`${new JsonNumber('1.10')}`).toBe('1.10');
  for (const text of ['', '01', '1.', '.5', '+1', 'NaN', '1n', ' 1', '0x1']) {
    expect(() => new JsonNumber(text), text).toThrow(TypeError);
  }
});

test('a fault names its position', () => {
  for (const [text, position] of [
    ['{"a":1,}', 7],
    ['[1 2]', 3],
    ['"a\u0000"', 2],
    ['[', 1],
    ['{"a" 1}', 5],
    ['"\\x"', 0],
    ['1 2', 2],
  ] as const) {
    expect(() => parseJson(text), text).toThrow(new RegExp(`^Expected .+ at position ${position} of the JSON\\.$`));
  }
});

test('plain values and exact ones are written together', () => {
  const written = stringifyJson({
    price: new JsonNumber('1.10'),
    big: 9007199254740993n,
    at: new Date(0),
    left: undefined,
    list: [
      undefined,
      new Map([
        ['10', 1],
        ['2', null],
      ]),
    ],
  });
  expect(written).toBe(
    '{"price":1.10,"big":9007199254740993,"at":"1970-01-01T00:00:00.000Z","list":[null,{"10":1,"2":null}]}',
  );
});

test('what JSON cannot express is refused', () => {
  const cycle: unknown[] = [];
  cycle.push({ cycle });
  for (const value of [undefined, Number.NaN, Number.POSITIVE_INFINITY, () => 1, Symbol('s'), cycle]) {
    expect(() => stringifyJson(value)).toThrow(TypeError);
  }
  // The same value twice is no cycle.
  expect(stringifyJson([cycle.length, [cycle.length]])).toBe('[1,[1]]');
});

test('nesting has no limit', () => {
  const text = `${'[{"a":'.repeat(20_000)}1.0${'}]'.repeat(20_000)}`;
  const value = parseJson(text);
  expect(stringifyJson(value)).toBe(text);
  expect(Array.isArray(toPlain(value))).toBe(true);
});

function isTaken(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return false;
  }
}

test('a long text is read and written in steps, and the caller may end the work between two of them', async () => {
  const text = `[${Array.from({ length: 5_000 }, (_, index) => `{"a":${index}.10}`).join(',')}]`;
  const countSteps = (steps: Iterator<undefined>) => {
    let count = 0;
    while (steps.next().done !== true) count += 1;
    return count;
  };
  expect(countSteps(parseJsonSteps(text))).toBeGreaterThanOrEqual(20);
  const value = finish(parseJsonSteps(text));
  expect(countSteps(stringifyJsonSteps(value))).toBeGreaterThanOrEqual(20);
  expect(finish(stringifyJsonSteps(value))).toBe(text);
  expect(advance(parseJsonSteps(text), 0)).toEqual({ done: false, value: undefined });

  function* slow() {
    for (let step = 0; step < 3; step += 1) {
      const until = performance.now() + 10;
      while (performance.now() < until);
      yield;
    }
    return 'done';
  }
  let pauses = 0;
  const pause = async () => {
    pauses += 1;
  };
  expect(await finishInSlices(slow(), pause)).toBe('done');
  expect(pauses).toBe(3);
  const ended = finishInSlices(slow(), async () => Promise.reject(new Error('not wanted')));
  await expect(ended).rejects.toThrow('not wanted');
});
