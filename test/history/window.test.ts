import { describe, expect, it } from 'vitest';
import { defaultWindowFrom, hasFromBound } from '../../src/history/search/plan/window.ts';
import { parse } from '../support/oracle/query-parsing.ts';

const after = 'occurredAt:>"2026-01-01T00:00:00Z"';
const notBefore = 'occurredAt:>="2026-01-01T00:00:00Z"';
const before = 'occurredAt:<"2026-02-01T00:00:00Z"';
const between = 'occurredAt:(>"2026-01-01T00:00:00Z" AND <"2026-02-01T00:00:00Z")';

it('the default window begins 30 days of 86,400 seconds ago', () => {
  expect(defaultWindowFrom(Date.UTC(2026, 7, 31, 12, 0, 0, 1))).toBe(Date.UTC(2026, 7, 1, 12, 0, 0, 1));
});

describe('the default window is replaced', () => {
  for (const [title, query] of Object.entries({
    'by an occurredAt with a from-bound at the top': after,
    'by one that includes its time': notBefore,
    'by a range at the top': between,
    'by a range whose bounds stand the other way round':
      'occurredAt:(<"2026-02-01T00:00:00Z" AND >"2026-01-01T00:00:00Z")',
    'by one beside other terms': `type:update ${after} compoundLogicalQuery:((type:create) OR (type:update))`,
    'by one in an AND': `compoundLogicalQuery:((${after}) AND (type:update))`,
    'by one in an AND in an AND': `compoundLogicalQuery:(((${after}) AND (type:update)) AND (entity:order))`,
    'by one in a group of a single operand': `compoundLogicalQuery:((${after}))`,
    'by one in groups of single operands': `compoundLogicalQuery:((compoundLogicalQuery:(((${between})))))`,
    'by one at the top although another is in an arm of an OR': `${after} compoundLogicalQuery:((${after}) OR (type:update))`,
  })) {
    it(title, () => expect(hasFromBound(parse(query))).toBe(true));
  }
});

describe('the default window applies', () => {
  for (const [title, query] of Object.entries({
    'without a query': '',
    'without occurredAt': 'entity:order',
    'with nothing but a to-bound': before,
    'with a range of two to-bounds': 'occurredAt:(<"2026-02-01T00:00:00Z" AND <="2026-02-01T00:00:00Z")',
    'with an occurredAt in one arm of an OR': `compoundLogicalQuery:((${after}) OR (type:update))`,
    'with an occurredAt in every arm of an OR': `compoundLogicalQuery:((${after}) OR (${between}))`,
    'with an AND in an arm of an OR': `compoundLogicalQuery:(((${after}) AND (type:update)) OR (entity:order))`,
    'with an OR in an AND': `compoundLogicalQuery:(((${after}) OR (type:update)) AND (entity:order))`,
    'with a to-bound at the top and a from-bound in an arm': `${before} compoundLogicalQuery:((${after}) OR (type:update))`,
  })) {
    it(title, () => expect(hasFromBound(parse(query))).toBe(false));
  }
});
