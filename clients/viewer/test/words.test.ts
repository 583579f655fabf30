import { expect, test } from 'vitest';
import type { HistoryMessages } from '../src/history-element.ts';
import { languageOf } from '../src/texts/language.ts';

test('German has German texts, and a language whose tag only begins so has not', () => {
  const texts = ['de', 'de-AT', 'den', 'en'].map((tag) => languageOf(tag, 'UTC', undefined).text('search'));
  expect(texts[1]).toBe(texts[0]);
  expect(texts[2]).toBe(texts[3]);
  expect(texts[0]).not.toBe(texts[3]);
});

test('words of a host that are no texts are left out, and the others count', () => {
  const given: unknown = {
    entities: null,
    actors: 'none',
    fields: { status: 7, total: 'Sum' },
    values: { status: { PAID: 'paid', OPEN: 1 }, total: null },
  };
  const { entity, actor, field, value, meanings } = languageOf('en', 'UTC', given as HistoryMessages);
  expect([entity('order'), actor('Mara'), field('order', 'status'), field('order', 'total')]).toEqual([
    'Order',
    'Mara',
    'Status',
    'Sum',
  ]);
  expect([value('order', 'status', 'PAID'), value('order', 'status', 'OPEN')]).toEqual(['paid', undefined]);
  expect(meanings('paid').values).toEqual(['PAID']);
});
