import { expect, test } from 'vitest';
import { queryOfActor, queryOfAddress, queryOfCorrelation, queryOfOnBehalfOf } from '../src/history/who-queries.ts';

test('links ask for ids before names, at any time, and quote what would be a condition', () => {
  const anyTime = 'occurredAt:>="1970-01-01T00:00:00Z"';
  expect(queryOfActor({ id: 'u-17', name: 'Jane Doe' })).toBe('actorId:u-17');
  expect(queryOfActor({ id: 'missing', name: 'Jane Doe' })).toBe('actorId:"missing"');
  expect(queryOfActor({ id: undefined, name: 'Doe, Jane' })).toBe('actor:"Doe, Jane"');
  expect(queryOfOnBehalfOf({ id: 'c-1', name: 'Acme Ltd' })).toBe(`onBehalfOfId:c-1 ${anyTime}`);
  expect(queryOfOnBehalfOf({ name: 'Acme Ltd' })).toBe(`onBehalfOf:Acme Ltd ${anyTime}`);
  expect(queryOfAddress('2001:db8::1')).toBe(`context.ip:"2001:db8::1" ${anyTime}`);
  expect(queryOfCorrelation('exists')).toBe(`correlationId:"exists" ${anyTime}`);
});
