import { expect, test } from 'vitest';
import { tickTexts } from '../src/charts/bars.ts';
import { numberTexts } from '../src/components/numbers.ts';
import { programText } from '../src/security/program-text.ts';

test('numbers have the form of the language', () => {
  const [german, english] = [numberTexts('de'), numberTexts('en')];
  expect([german.count(4_944), english.count(4_944)]).toEqual(['4.944', '4,944']);
  expect([german.tenths(1.44), english.tenths(1.44)]).toEqual(['1,4', '1.4']);
  expect([german.dollars(1_234.5), english.dollars(1_234.5)]).toEqual(['1.234,50\u00a0$', '$1,234.50']);
  expect([0, 0.00042, 0.0123456, 0.05, 0.1].map(english.dollars)).toEqual([
    '$0',
    '$0.00042',
    '$0.0123',
    '$0.05',
    '$0.10',
  ]);
});

test('a chart names the days of its bars, and not the one after its last', () => {
  const day = 86_400;
  const place = { zone: 'utc', end: 3 * day } as const;
  const [first, , last, after] = tickTexts([0, day, 2 * day, 3 * day], day, place);
  expect([first, last].every((text) => /\d/.test(text ?? ''))).toBe(true);
  expect(after).toBe('');
  // At midnight it is the day in place of the clock.
  const [midnight = '', six = ''] = tickTexts([2 * day, 2 * day + 6 * 3_600], 6 * 3_600, place);
  expect(midnight).toBe(last);
  expect(six).toMatch(/6/);
});

test('a browser is named with its version and system, another program by its first word', () => {
  const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';
  expect(
    [
      'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome}`,
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Edg/140.0.0.0`,
      'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1',
      'Mozilla/5.0 (compatible; unknown)',
      'curl/8.14.1',
      'python-requests/2.32 CPython/3.13',
      '',
    ].map(programText),
  ).toEqual([
    'Firefox 140, Linux',
    'Chrome 140, Windows',
    'Edge 140, Windows',
    'Safari 19, iOS',
    'Mozilla/5.0',
    'curl/8.14.1',
    'python-requests/2.32',
    '',
  ]);
});
