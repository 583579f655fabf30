import { expect, test } from 'vitest';
import { timeZone } from '../src/components/time-text.ts';
import { completionPlace, suggestionsAt, wantedNames } from '../src/history/completion.ts';

const now = Date.parse('2026-11-22T12:00:00Z');
/** The bar marks the caret. */
const at = (text: string) => completionPlace(text.replace('|', ''), text.indexOf('|'));
const labels = (text: string, names: string[] = []) => suggestionsAt(at(text), names, now).map(({ label }) => label);
const accepted = (text: string, label: string, names: string[] = []) => {
  const suggestion = suggestionsAt(at(text), names, now).find((one) => one.label === label);
  const caret = text.indexOf('|');
  return suggestion && `${text.slice(0, suggestion.start)}${suggestion.insert}${text.slice(caret + 1)}`;
};

test('where a term may begin, fields that begin so are offered', () => {
  expect(labels('|')).toHaveLength(9);
  expect(labels('ent|')).toEqual(['entity', 'entityId']);
  expect(labels('type:update a|')).toEqual(['actor']);
  expect(labels('compoundLogicalQuery:((t|')).toEqual(['type']);
  expect(labels('related:elemMatch(e|')).toEqual(['entity', 'entityId']);
});

test('right after a colon only values are offered, and names are asked for by what is written', () => {
  expect(labels('type:|')).toEqual(['create', 'update', 'delete']);
  expect(labels('type:(create, d|')).toEqual(['delete']);
  expect(wantedNames(at('actor:Jane D|'))).toEqual({ field: 'actor', prefix: 'Jane D' });
  expect(wantedNames(at('entity:(order, pro|'))).toEqual({ field: 'entity', prefix: 'pro' });
  expect(wantedNames(at('related:elemMatch(entity:cu|'))).toEqual({ field: 'related.entity', prefix: 'cu' });
  for (const none of ['actor:J*|', 'actor:~J|', 'entityId:1|', 'type:|'])
    expect(wantedNames(at(none)), none).toBeUndefined();
});

test('a name that is accepted takes the place of what was written, in quotes where it needs them', () => {
  expect(accepted('actor:ja|', 'Jane Doe', ['Jane Doe'])).toBe('actor:Jane Doe ');
  expect(accepted('actor:"Do|', 'Doe, Jane', ['Doe, Jane'])).toBe('actor:"Doe, Jane" ');
  expect(accepted('entity:(order, pr|) type:update', 'product', ['product'])).toBe(
    'entity:(order, product) type:update',
  );
  expect(accepted('actor:Jane Doe ty|', 'type')).toBe('actor:Jane Doe type:');
});

test('a time is offered as the range that it means', () => {
  timeZone.value = 'utc';
  expect(accepted('occurredAt:|', 'the last 7 days')).toBe('occurredAt:>="2026-11-15T12:00:00Z" ');
  expect(accepted('occurredAt:|', 'yesterday, from midnight to midnight')).toBe(
    'occurredAt:(>="2026-11-21T00:00:00Z" AND <"2026-11-22T00:00:00Z") ',
  );
});
