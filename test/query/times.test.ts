import { describe, expect, it } from 'vitest';
import { faultOf, parse } from '../support/oracle/query-parsing.ts';

const noon = Date.UTC(2026, 7, 31, 12);

function rangeOf(value: string) {
  const [term] = parse(`occurredAt:${value}`).operands;
  if (term?.kind !== 'time') throw new Error(`no range: ${value}`);
  return { from: term.from, to: term.to };
}

function momentOf(time: string): number | undefined {
  return rangeOf(`>="${time}"`).from;
}

describe('a range', () => {
  it('has its from-bound inclusive and its to-bound exclusive, in whole milliseconds', () => {
    expect(rangeOf('>"2026-08-31T12:00:00.000Z"')).toEqual({ from: noon + 1, to: undefined });
    expect(rangeOf('>="2026-08-31T12:00:00.000Z"')).toEqual({ from: noon, to: undefined });
    expect(rangeOf('<"2026-08-31T12:00:00.000Z"')).toEqual({ from: undefined, to: noon });
    expect(rangeOf('<="2026-08-31T12:00:00.000Z"')).toEqual({ from: undefined, to: noon + 1 });
  });

  it('is compared at full precision', () => {
    for (const digits of ['0005', '000000001', '000999999']) {
      const time = `2026-08-31T12:00:00.${digits}Z`;
      expect(rangeOf(`>"${time}"`)).toEqual({ from: noon + 1, to: undefined });
      expect(rangeOf(`>="${time}"`)).toEqual({ from: noon + 1, to: undefined });
      expect(rangeOf(`<"${time}"`)).toEqual({ from: undefined, to: noon + 1 });
      expect(rangeOf(`<="${time}"`)).toEqual({ from: undefined, to: noon + 1 });
    }
    expect(rangeOf('>="2026-08-31T12:00:00.000000000Z"')).toEqual({ from: noon, to: undefined });
    expect(rangeOf('>="2026-08-31T12:00:00.12Z"')).toEqual({ from: noon + 120, to: undefined });
    expect(rangeOf('>"1969-12-31T23:59:59.9995Z"')).toEqual({ from: 0, to: undefined });
  });

  it('has two bounds in parentheses, joined by AND, in any order', () => {
    const to = '<"2026-08-31T13:00:00Z"';
    expect(rangeOf(`(>"2026-08-31T12:00:00Z" AND ${to})`)).toEqual({ from: noon + 1, to: noon + 3_600_000 });
    expect(rangeOf(`(${to} AND >="2026-08-31T12:00:00Z")`)).toEqual({ from: noon, to: noon + 3_600_000 });
  });

  it('may have one bound in parentheses', () => {
    expect(rangeOf('(>"2026-08-31T12:00:00Z")')).toEqual({ from: noon + 1, to: undefined });
    expect(rangeOf('(<="2026-08-31T12:00:00Z")')).toEqual({ from: undefined, to: noon + 1 });
  });

  it('with two bounds of one side means both', () => {
    expect(rangeOf('(>"2026-08-31T12:00:00Z" AND >="2026-08-31T11:00:00Z")')).toEqual({
      from: noon + 1,
      to: undefined,
    });
    expect(rangeOf('(<"2026-08-31T12:00:00Z" AND <="2026-08-31T11:00:00Z")')).toEqual({
      from: undefined,
      to: noon - 3_599_999,
    });
  });

  it('may end before it starts', () => {
    expect(rangeOf('(>"2026-08-31T12:00:00Z" AND <"2026-08-31T11:00:00Z")')).toEqual({
      from: noon + 1,
      to: noon - 3_600_000,
    });
  });

  it('is all that occurredAt takes', () => {
    for (const value of [
      '',
      '2026-08-31T12:00:00Z',
      '"2026-08-31T12:00:00Z"',
      '*',
      '~2026',
      '="2026-08-31T12:00:00Z"',
      '>2026-08-31T12:00:00Z',
      '> "2026-08-31T12:00:00Z"',
      '>"2026-08-31T12:00:00Z',
      '(>"2026-08-31T12:00:00Z" )',
      '()',
      '(>"2026-08-31T12:00:00Z" OR <"2026-08-31T13:00:00Z")',
      '(>"2026-08-31T12:00:00Z"  AND <"2026-08-31T13:00:00Z")',
      '( >"2026-08-31T12:00:00Z" AND <"2026-08-31T13:00:00Z")',
      '(>"2026-08-31T12:00:00Z" AND <"2026-08-31T13:00:00Z" AND <"2026-08-31T13:00:00Z")',
      '(>"2026-08-31T12:00:00Z" AND <"2026-08-31T13:00:00Z"',
      '>"2026-08-31T12:00:00Z"x',
      '(2026-08-31T12:00:00Z, x)',
      '<>"2026-08-31T12:00:00Z"',
    ]) {
      expect([value, faultOf(`occurredAt:${value}`).status]).toEqual([value, 400]);
    }
    expect(faultOf('occurredAt:2026').details[0]?.message).toBe(
      'At position 12: expected a range such as >"2026-08-31T12:00:00Z" as the value of occurredAt, found "2026"',
    );
  });
});

describe('a time', () => {
  it('has Z or an offset', () => {
    for (const time of [
      '2026-08-31T12:00:00Z',
      '2026-08-31T14:00:00+02:00',
      '2026-08-31T06:30:00-05:30',
      '2026-08-31T12:00:00-00:00',
      '2026-09-01T11:59:00+23:59',
      '2026-08-31t12:00:00z',
    ]) {
      expect([time, momentOf(time)]).toEqual([time, noon]);
    }
  });

  it('has 0 to 9 fractional digits', () => {
    for (let digits = 1; digits <= 9; digits += 1) {
      expect(momentOf(`2026-08-31T12:00:00.${'5'.padEnd(digits, '0')}Z`)).toBe(noon + 500);
    }
    for (const fraction of ['.', '.0000000000', ',5', '.5.', '.-5'])
      faultOf(`occurredAt:>"2026-08-31T12:00:00${fraction}Z"`);
  });

  it('is on a date that exists', () => {
    for (const [time, moment] of Object.entries({
      '2024-02-29T00:00:00Z': Date.UTC(2024, 1, 29),
      '2000-02-29T00:00:00Z': Date.UTC(2000, 1, 29),
      '2026-12-31T23:59:59.999Z': Date.UTC(2027, 0, 1) - 1,
      '1970-01-01T00:00:00Z': 0,
      '0000-01-01T00:00:00Z': -62_167_219_200_000,
      '0099-12-31T00:00:00Z': -59_011_545_600_000,
      '9999-12-31T23:59:59.999Z': 253_402_300_799_999,
    })) {
      expect([time, momentOf(time)]).toEqual([time, moment]);
    }
    for (const date of [
      '2026-02-29',
      '2025-02-29',
      '1900-02-29',
      '2026-02-30',
      '2026-04-31',
      '2026-06-31',
      '2026-09-31',
      '2026-11-31',
      '2026-01-32',
      '2026-00-01',
      '2026-13-01',
      '2026-01-00',
    ]) {
      expect(faultOf(`occurredAt:>"${date}T00:00:00Z"`).details[0]?.message).toBe(
        `At position 14: expected a date that exists, found "${date}T00:00:00Z"`,
      );
    }
  });

  it('is at a time of day that exists, with an offset that exists', () => {
    for (const rest of [
      '24:00:00Z',
      '12:60:00Z',
      '23:59:60Z',
      '12:00:00+24:00',
      '12:00:00+02:60',
      '12:00:00+0200',
      '12:00:00+2',
      '12:00:00',
      '12:00Z',
      '12:00:00 Z',
      '1:00:00Z',
    ]) {
      faultOf(`occurredAt:>"2026-08-31T${rest}"`);
    }
    for (const time of [
      '2026-08-31',
      '2026-08-31 12:00:00Z',
      '26-08-31T12:00:00Z',
      '+2026-08-31T12:00:00Z',
      ' 2026-08-31T12:00:00Z',
      '2026-08-31T12:00:00Z ',
      '٢026-08-31T12:00:00Z',
      '',
    ]) {
      faultOf(`occurredAt:>"${time}"`);
    }
  });
});
