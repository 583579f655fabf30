import { expect, test } from 'vitest';
import { timeZone } from '../src/components/times.ts';
import { completionPlace, namesToRead, suggestionsAt } from '../src/history/completion.ts';

const now = Date.parse('2026-11-22T12:00:00Z');
/** The bar marks the caret. */
const at = (text: string) => completionPlace(text.replace('|', ''), text.indexOf('|'));
const labels = (text: string, names: string[] = []) => suggestionsAt(at(text), names, now).map(({ label }) => label);
const accepted = (text: string, label: string, names: string[] = []) => {
  const suggestion = suggestionsAt(at(text), names, now).find((candidate) => candidate.label === label);
  const caret = text.indexOf('|');
  return suggestion && `${text.slice(0, suggestion.start)}${suggestion.insert}${text.slice(caret + 1)}`;
};

test('where a term may begin, fields that begin so are offered', () => {
  expect(labels('|')).toHaveLength(11);
  expect(labels('ent|')).toEqual(['entity', 'entityId']);
  expect(labels('type:update a|')).toEqual(['actor']);
  expect(labels('compoundLogicalQuery:((t|')).toEqual(['type']);
  expect(labels('related:elemMatch(e|')).toEqual(['entity', 'entityId']);
});

test('right after a colon only values are offered, and names are read by what is written', () => {
  expect(labels('type:|')).toEqual(['create', 'update', 'delete']);
  expect(labels('type:(create, d|')).toEqual(['delete']);
  expect(namesToRead(at('actor:Jane D|'))).toEqual({ field: 'actor', prefix: 'Jane D' });
  expect(namesToRead(at('entity:(order, pro|'))).toEqual({ field: 'entity', prefix: 'pro' });
  expect(namesToRead(at('related:elemMatch(entity:cu|'))).toEqual({ field: 'related.entity', prefix: 'cu' });
  for (const none of ['actor:J*|', 'actor:~J|', 'entityId:1|', 'type:|'])
    expect(namesToRead(at(none)), none).toBeUndefined();
});

test('in a match of one change its own fields and words are offered, and an end', () => {
  expect(labels('ch|')).toEqual(['change']);
  expect(labels('change:|')).toEqual(['elemMatch(']);
  expect(labels('change:elemMatch(|')).toEqual(['path', 'before', 'after', 'is']);
  expect(labels('change:elemMatch(path:price |')).toEqual(['path', 'before', 'after', 'is', ')']);
  expect(labels('change:elemMatch(path:price is:|')).toEqual(['lower', 'higher']);
  expect(labels('change:elemMatch(before:|')).toEqual(['exists', 'missing', 'null']);
  expect(labels('change:elemMatch(after:m|')).toEqual(['missing']);
  expect(labels('change:elemMatch(is:lower) ty|')).toEqual(['type']);
  expect(accepted('change:elemMatch(path:price is:lo|', 'lower')).toBe('change:elemMatch(path:price is:lower ');
});

test('names of paths are read with the one entity type of the query', () => {
  expect(namesToRead(at('path:pri|'))).toEqual({ field: 'path', prefix: 'pri', entity: undefined });
  expect(namesToRead(at('entity:product path:|'))).toEqual({ field: 'path', prefix: '', entity: 'product' });
  expect(namesToRead(at('path:pri| entity:product'))).toEqual({ field: 'path', prefix: 'pri', entity: 'product' });
  expect(namesToRead(at('entity:(order, product) path:items.*|'))).toEqual({
    field: 'path',
    prefix: 'items.*',
    entity: undefined,
  });
  expect(namesToRead(at('entity:order change:elemMatch(path:st|'))).toEqual({
    field: 'path',
    prefix: 'st',
    entity: 'order',
  });
  for (const none of [
    'path:~p|',
    'related:elemMatch(path:p|',
    'change:elemMatch(after:x|',
    'change:elemMatch(entity:x|',
  ])
    expect(namesToRead(at(none)), none).toBeUndefined();
  expect(accepted('path:it|', 'items.*.quantity', ['items.*.quantity'])).toBe('path:items.*.quantity ');
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
