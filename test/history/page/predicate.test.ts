import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { expect, test } from 'vitest';
import { TimeSlice } from '../../../src/core/fairness/time-slice.ts';
import { extendDictionary } from '../../../src/history/search/names/dictionary.ts';
import type { ResolvedMatcher } from '../../../src/history/search/plan/expression.ts';
import { entryConditions } from '../../../src/history/search/predicate.ts';

const none: ResolvedMatcher = { kind: 'ids', isIn: true, count: 0, hashes: '{}' };
const all: ResolvedMatcher = { kind: 'ids', isIn: false, count: 0, hashes: '{}' };
const text: ResolvedMatcher = { kind: 'text', text: 'x', quoted: false };

const compiler = new Kysely<unknown>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

test.each([
  ['no id', [none], [], false],
  ['no id of those with a text', [text, none], [text], false],
  ['every id', [all], [], true],
  ['a text', [text], [text], true],
])('a related document of %s is looked up only if it can exist', async (_what, ids, entities, isLookedUp) => {
  const dictionary = extendDictionary(undefined, {
    kinds: [],
    actors: [],
    since: '0',
    recent: 0,
    lineage: '',
    bytes: 0,
  });
  const term = { kind: 'related', ids, entities } as const;
  const satisfies = await entryConditions('acme', term, dictionary, new TimeSlice());
  const { sql: statement, parameters } = satisfies(term).compile(compiler);
  expect(statement.includes('change_related')).toBe(isLookedUp);
  if (isLookedUp) expect(parameters).toContain('acme');
  else expect(statement).toBe('false');
});
