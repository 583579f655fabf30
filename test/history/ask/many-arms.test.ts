import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TimeSlice } from '../../../src/core/fairness/time-slice.ts';
import { createFindPage, type FindPage } from '../../../src/history/search/find-page.ts';
import { type Dictionary, extendDictionary } from '../../../src/history/search/names/dictionary.ts';
import { readNames } from '../../../src/history/search/names/name-store.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import type { Expression } from '../../../src/history/search/plan/expression.ts';
import { resolve } from '../../../src/history/search/plan/resolve.ts';
import { entryConditions } from '../../../src/history/search/predicate.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { RegexBudget, RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';

const tenant = 'acme';
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const always = 'occurredAt:>="1970-01-01T00:00:00Z"';

const regexes = new RegexMatcherPool();

function before(days: number): string {
  return new Date(now - days * day).toISOString();
}

/** `count` arms, each with its own time and pattern. Every third has an additional term. */
function armsOf(count: number, more: (place: number) => string = () => ''): string {
  const arms = Array.from({ length: count }, (_none, place) => {
    const time =
      place % 2 === 0
        ? `occurredAt:>"${before(place / 2)}"`
        : `occurredAt:(>="${before(place)}" AND <"${before(place / 3)}")`;
    return `(${time} actor:*${place % 10}*${place % 3 === 0 ? more(place) : ''})`;
  });
  return `compoundLogicalQuery:(${arms.join(' OR ')}) ${always}`;
}

async function expressionOf(q: string, dictionary: Dictionary): Promise<Expression> {
  const query = parseQuery(q, changelogDialect);
  return await resolve(query, { dictionary, regexes, budget: new RegexBudget() });
}

describe('a history', () => {
  let database: TestDatabase;
  let findPage: FindPage;
  const changes: Omit<Change, 'identity'>[] = Array.from({ length: 3_000 }, (_none, place) => ({
    at: now - Math.floor(((place * 7919) % 3_000) * 0.02 * day),
    type: (['create', 'update', 'delete'] as const)[place % 3] ?? 'update',
    entity: ['order', 'customer', 'product'][place % 7] ?? 'site',
    entityId: String(place % 40),
    actor: `actor ${(place * 31) % 150}`,
    related: place % 5 === 0 ? [{ entity: 'group', entityId: String(place % 4) }] : [],
    paths: '{}',
  }));

  beforeAll(async () => {
    database = await createTestDatabase();
    const { pool, db } = database;
    await createTenant(db, tenant);
    const record = createRecorder(db, tenant, () => now);
    await record(changes.map((change) => ({ ...change, identity: randomBytes(16) })));
    await foldHistory(db, tenant);
    findPage = createFindPage({ pool, db, regexes, now: () => now });
  });

  afterAll(() => database.drop());

  test.each([
    ['few arms', armsOf(4)],
    ['many arms', armsOf(40)],
    ['many arms with types', armsOf(30, (place) => ` type:${place % 2 === 0 ? 'create' : '(update, delete)'}`)],
    ['many arms with related types', armsOf(30, () => ' related.entity:g*')],
    ['many arms with documents', armsOf(25, (place) => ` entity:order entityId:(${place % 40}, ${(place * 3) % 40})`)],
    ['few arms with documents', armsOf(4, () => ' entity:order entityId:(1, 2, 3)')],
    ['many arms with related documents', armsOf(25, (place) => ` related.entityId:${place % 4}`)],
  ])('is answered like an evaluator that reads every entry: %s', async (_name, q) => {
    const query = parseQuery(q, changelogDialect);
    const expected = changes
      .filter((change) => matches(query, change, now))
      .map(({ at, actor, entityId }) => ({ at, actor, entityId }));
    expect(expected.length).toBeGreaterThan(20);
    const key = (entry: { at: number; actor?: string; entityId: string }) =>
      `${String(entry.at).padStart(15)} ${entry.actor} ${entry.entityId}`;
    const listed: string[] = [];
    for (let skip = 0; skip <= expected.length; skip += 700) {
      const { total, entries } = await findPage(tenant, query, { skip, size: 700 });
      expect(total).toBe(expected.length);
      listed.push(...entries.map(key));
    }
    expect(listed.toSorted()).toEqual(expected.map(key).sort());
    const times = listed.map((text) => text.slice(0, 15));
    expect(times).toEqual(times.toSorted().reverse());
  });

  test('conditions on actor bitmaps match the same entries as conditions that list the actors', async () => {
    const { pool, db } = database;
    const names = await readNames(pool, tenant, undefined);
    const dictionary = extendDictionary(undefined, names);
    for (const q of [armsOf(40), 'actor:actor 1*', 'actor:*', 'actor:nobody', 'actor:~7$ actor:*1*']) {
      const expression = await expressionOf(q, dictionary);
      const counts: number[] = [];
      for (const maxListedKeys of [200_000, 0]) {
        const satisfies = await entryConditions(tenant, expression, dictionary, new TimeSlice(), maxListedKeys);
        const { rows } = await sql<{ total: number }>`
          select count(*) as total from change_entry e where e.tenant = ${tenant} and ${satisfies(expression)}`.execute(
          db,
        );
        counts.push(rows[0]?.total ?? -1);
      }
      const query = parseQuery(`${q} ${always}`, changelogDialect);
      const expected = changes.filter((change) => matches(query, change, now)).length;
      expect({ q, counts }).toEqual({ q, counts: [expected, expected] });
    }
  });
});
