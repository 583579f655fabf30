import { expect, test } from 'vitest';
import { hasWords, wordPattern } from '../src/find/found.ts';

test('each written word begins a word of the name, in any order and case', () => {
  for (const text of ['price', 'AMOUNT', 'am pri', 'price.amount', ''])
    expect(hasWords('price.amount', text), text).toBe(true);
  for (const text of ['rice', 'price x', 'amounts']) expect(hasWords('price.amount', text), text).toBe(false);
});

test('the pattern of a text matches where the text begins a word, and nothing in it is an operator', () => {
  // The service's (?i) is the flag of JavaScript.
  const matches = (text: string, name: string) => new RegExp(wordPattern(text).replace('(?i)', ''), 'iu').test(name);
  expect(matches('eche', 'Noor Echeberri')).toBe(true);
  expect(matches('noor e', 'Noor Echeberri')).toBe(true);
  expect(matches('jel', 'Zoë-Jelínková')).toBe(true);
  expect(matches('erri', 'Noor Echeberri')).toBe(false);
  expect(matches('r', 'Zoër')).toBe(false);
  expect(matches('a.b(c', 'a.b(c)')).toBe(true);
  expect(matches('a.b', 'axb')).toBe(false);
});
