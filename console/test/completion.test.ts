import { expect, test } from 'vitest';
import { timeZone } from '../src/components/times.ts';
import { completionPlace, namesToRead, suggestionsAt } from '../src/history/completion.ts';

const now = Date.parse('2026-11-22T12:00:00Z');
/** The bar marks the caret. */
const at = (text: string) => completionPlace(text.replace('|', ''), text.indexOf('|'));
const all = { ids: true, context: true };
const suggestions = (text: string, names: string[] = [], rights = all) =>
  suggestionsAt(at(text), { names: names.map((name) => ({ name, hint: '' })), now, rights });
const labels = (text: string, names: string[] = [], rights = all) =>
  suggestions(text, names, rights).map(({ label }) => label);
const accepted = (text: string, label: string, names: string[] = []) => {
  const suggestion = suggestions(text, names).find((candidate) => candidate.label === label);
  const caret = text.indexOf('|');
  return suggestion && `${text.slice(0, suggestion.start)}${suggestion.insert}${text.slice(caret + 1)}`;
};

test('where a term may begin, fields that begin so are offered', () => {
  expect(labels('|')).toHaveLength(17);
  expect(labels('ent|')).toEqual(['entity', 'entityId']);
  expect(labels('type:update a|')).toEqual(['actor', 'actorId']);
  expect(labels('compoundLogicalQuery:((t|')).toEqual(['type']);
  expect(labels('related:elemMatch(e|')).toEqual(['entity', 'entityId']);
});

test('what a session may not use in a query is not offered', () => {
  const none = { ids: false, context: false };
  expect(labels('|', [], none)).toHaveLength(11);
  expect(labels('a|', [], none)).toEqual(['actor']);
  expect(labels('co|', [], { ids: true, context: false })).toEqual(['compoundLogicalQuery', 'correlationId']);
  expect(labels('context.|')).toEqual(['context.ip', 'context.requestId']);
});

test('what an entry may lack has its conditions as words, and the same texts as values in quotes', () => {
  expect(labels('actorId:|', ['u-17'])).toEqual(['u-17', 'exists', 'missing']);
  expect(labels('context.ip:m|')).toEqual(['missing']);
  expect(labels('actor:|', ['Jane Doe'])).toEqual(['Jane Doe']);
  expect(accepted('onBehalfOf:|', 'missing')).toBe('onBehalfOf:missing ');
  const [value] = suggestions('onBehalfOf:miss|', ['missing']);
  expect(value?.insert).toBe('"missing" ');
  expect(labels('context."user-agent":Moz type:|')).toEqual(['create', 'update', 'delete']);
  expect(namesToRead(at('actorId:u-|'))).toEqual({ field: 'actorId', prefix: 'u-' });
  expect(namesToRead(at('context.ip:203.|'))).toEqual({ field: 'context.ip', prefix: '203.' });
  for (const field of ['correlationId', 'context.requestId', 'onBehalfOfId'])
    expect(namesToRead(at(`${field}:a|`)), field).toBeUndefined();
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
