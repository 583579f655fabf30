import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TimeSlice } from '../../../src/core/fairness/time-slice.ts';
import { JsonMeter, measureJson } from '../../../src/core/json/measure.ts';
import { keysOf, parseJsonInSlices } from '../../../src/core/json/parse-in-slices.ts';
import { trials } from '../../support/oracle/trials.ts';

function valuesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, member) => sum + valuesOf(member), 1);
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

const indented = fc.tuple(fc.jsonValue(), fc.constantFrom('', '\t', ' \n'));

describe('JSON is measured before it is parsed', () => {
  test('its values are counted', () => {
    fc.assert(
      fc.property(indented, ([value, indent]) => {
        const text = JSON.stringify(value, undefined, indent);
        expect(measureJson(text, 100)).toEqual({ values: valuesOf(JSON.parse(text)), isTooDeep: false });
      }),
    );
  });

  test('keys, brackets and commas in strings are no values', () => {
    expect(measureJson('{"a,[":"\\\\",",":"\\"[{,","[]":[ ],"{}":{ }}', 2)).toEqual({ values: 5, isTooDeep: false });
  });

  test('its levels have a limit', () => {
    fc.assert(
      fc.property(indented, fc.integer({ min: 0, max: 6 }), ([value, indent], limit) => {
        const text = JSON.stringify(value, undefined, indent);
        expect(measureJson(text, limit).isTooDeep).toBe(depthOf(JSON.parse(text)) > limit);
      }),
    );
  });

  test('in portions it is the same, and the first value that is too many ends it', () => {
    fc.assert(
      fc.property(indented, fc.integer({ min: 1, max: 9 }), ([value, indent], portion) => {
        const text = JSON.stringify(value, undefined, indent);
        const { values } = measureJson(text, 100);
        const count = (maxValues: number) => {
          const meter = new JsonMeter(text, { maxDepth: 100, maxValues });
          while (!meter.isDone) meter.read(portion);
          return meter.values;
        };
        expect(count(values)).toBe(values);
        expect(count(values - 1)).toBe(values);
        if (values > 2) expect(count(1)).toBe(2);
      }),
    );
  });
});

async function resultOf(parse: () => unknown): Promise<unknown> {
  try {
    return await parse();
  } catch (error) {
    return error instanceof SyntaxError ? 'not valid' : error;
  }
}

async function expectSameAsJsonParse(text: string): Promise<void> {
  const sliced = await resultOf(() => parseJsonInSlices(text, new TimeSlice()));
  expect(sliced, text).toStrictEqual(await resultOf(() => JSON.parse(text)));
}

describe('JSON that is parsed in slices', () => {
  test('gives what JSON.parse gives', async () => {
    await fc.assert(
      fc.asyncProperty(indented, async ([value, indent]) => {
        const text = JSON.stringify(value, undefined, indent);
        await expectSameAsJsonParse(text);
        // The order of members counts too.
        expect(JSON.stringify(await parseJsonInSlices(text, new TimeSlice()))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  test('is refused where JSON.parse refuses it', async () => {
    const piece = fc.constantFrom(
      ...'[]{}",:\\/ \n\u0000\u00a0',
      '-',
      '0',
      '1',
      '.',
      'e',
      '+',
      'true',
      'nul',
      '"a"',
      '\\u00',
      '"\\n"',
    );
    await fc.assert(
      fc.asyncProperty(indented, fc.nat(), fc.nat({ max: 2 }), piece, async ([value], at, removed, inserted) => {
        const text = JSON.stringify(value);
        const index = at % (text.length + 1);
        await expectSameAsJsonParse(text.slice(0, index) + inserted + text.slice(index + removed));
      }),
      { numRuns: trials(700) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), (parts) => expectSameAsJsonParse(parts.join(''))),
      { numRuns: trials(700) },
    );
  });

  test.each([
    ['{"__proto__":{"a":1},"b":2}'],
    ['{"a":1,"a":{"b":2},"__proto__":1,"__proto__":2}'],
    ['{"1":1,"0":2,"b":3,"a":4}'],
    ['[1e400,-0,1E-7,0.1,12345678901234567890]'],
    ['"\\ud800\\u0041\\/\\b"'],
    ['{"a\\u0062":"\u{1f600}"}'],
    ['\ufeff1'],
    [''],
  ])('%j is as JSON.parse has it', async (text) => {
    await expectSameAsJsonParse(text);
    const value = await resultOf(() => parseJsonInSlices(text, new TimeSlice()));
    expect(JSON.stringify(value)).toBe(JSON.stringify(await resultOf(() => JSON.parse(text))));
  });

  test.each([1, 1_000, 1_001, 3_000])('tells the keys of an object of %i members, each once', async (count) => {
    const members = Array.from({ length: count }, (_, index) => `"${index % 2 === 0 ? index : `k${index}`}":1`);
    const text = `{${[...members, members[0], '"__proto__":1'].join()}}`;
    const object = await parseJsonInSlices(text, new TimeSlice());
    if (typeof object !== 'object' || object === null) throw new Error('it is no object');
    expect([...keysOf(object)].toSorted()).toEqual(Object.keys(object).toSorted());
    expect([...keysOf({ ...object })]).toEqual(Object.keys(object));
  });

  test('lets others continue at least every 500 values', async () => {
    let rests = 0;
    class DueSlice extends TimeSlice {
      override get isDue(): boolean {
        return true;
      }
      override async rest(): Promise<void> {
        rests += 1;
      }
    }
    const text = JSON.stringify({ a: Array(10_000).fill({ b: 1 }) });
    expect(await parseJsonInSlices(text, new DueSlice())).toEqual(JSON.parse(text));
    expect(rests).toBe(Math.floor(measureJson(text, 100).values / 500));
  });
});
