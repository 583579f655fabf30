import * as fc from 'fast-check';
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from 'kysely';
import { RE2JS } from 're2js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { glob, type ItemMatch, type Match } from '../../src/query/ast.ts';
import { likePattern, matcherToSql, queryToSql, type SqlMapping } from '../../src/query/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { arbitraryQuery, hardExpressions, hardNames } from '../support/query-arbitrary.ts';
import { type HistoryEntry, matches } from '../support/query-evaluator.ts';
import { fuzzSeed } from '../support/query-fuzz.ts';
import { parse } from '../support/query-parsing.ts';
import { canBeBare } from '../support/query-sketch.ts';

const columns: Record<string, string> = { entity: 'entity', entityId: 'entity_id', type: 'type', actor: 'actor' };
const compiler = new Kysely<unknown>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

/** A mapping onto one table whose related items are an array of JSON. */
function mappingOf(names: readonly string[]): SqlMapping {
  const matched = ({ source }: { source: string }) => names.filter((name) => RE2JS.compile(source).test(name));
  const test = (column: RawBuilder<unknown>, { matcher }: Match) => matcherToSql(column, matcher, matched);
  const inItem = (field: string) => sql`(item ->> ${sql.lit(field)})`;
  const someItem = (predicate: RawBuilder<unknown>) =>
    sql<boolean>`exists (select from jsonb_array_elements(related) as item where ${predicate})`;
  return {
    match(term: Match) {
      const column = columns[term.field];
      return column === undefined
        ? someItem(test(inItem(term.field.replace('related.', '')), term))
        : test(sql.ref(column), term);
    },
    time: () => sql.ref('at'),
    item: ({ operand }: ItemMatch) =>
      someItem(
        sql.join(
          operand.operands.map((term) => test(inItem(term.field), term)),
          sql` and `,
        ),
      ),
  };
}

function compile(text: string, names: readonly string[] = []): [string, readonly unknown[]] {
  const compiled = queryToSql(parse(text), mappingOf(names)).compile(compiler);
  return [compiled.sql, compiled.parameters];
}

describe('the SQL of a query', () => {
  it('has a parameter for every value', () => {
    expect(compile('actor:Jane type:create')).toEqual(['("actor" = $1 and "type" = $2)', ['Jane', 'create']]);
    expect(compile('compoundLogicalQuery:((actor:Jane) OR (type:create entity:x))')).toEqual([
      '("actor" = $1 or ("type" = $2 and "entity" = $3))',
      ['Jane', 'create', 'x'],
    ]);
  });

  it('is true for a query without terms', () => {
    expect(compile('')).toEqual(['true', []]);
    expect(compile('compoundLogicalQuery:((type:create) OR ())')).toEqual(['("type" = $1 or true)', ['create']]);
  });

  it('has LIKE for a glob, in byte order, with what LIKE knows escaped', () => {
    expect(compile('actor:J*n%_\\\\*')).toEqual([`"actor" collate "C" like $1 escape '\\'`, ['J%n\\%\\_\\\\%']]);
    expect(likePattern(glob(['', '']))).toBe('%');
  });

  it('has one array for the texts of a list', () => {
    expect(compile('actor:(Jane, "John, jr.", J*)')).toEqual([
      `("actor" = any($1::text[]) or "actor" collate "C" like $2 escape '\\')`,
      [['Jane', 'John, jr.'], 'J%'],
    ]);
    expect(compile('actor:(Jane)')).toEqual(['"actor" = any($1::text[])', [['Jane']]]);
    expect(compile('actor:(J*)')).toEqual([`"actor" collate "C" like $1 escape '\\'`, ['J%']]);
  });

  it('has the names that a regular expression matches, never the expression', () => {
    expect(compile('actor:~^J', ['Jane', 'Bob', 'John'])).toEqual(['"actor" = any($1::text[])', [['Jane', 'John']]]);
    const fromTable = matcherToSql(
      sql.ref('actor'),
      { kind: 'regex', source: 'x' },
      () => sql<string[]>`array(select name from matched)`,
    );
    expect(fromTable.compile(compiler).sql).toBe('"actor" = any(array(select name from matched))');
  });

  it('has whole milliseconds for a range of time', () => {
    expect(compile('occurredAt:>"1970-01-01T00:00:01Z"')).toEqual(['"at" >= $1::bigint', [1001]]);
    expect(compile('occurredAt:(>="1970-01-01T00:00:01Z" AND <="1970-01-01T00:00:02Z")')).toEqual([
      '("at" >= $1::bigint and "at" < $2::bigint)',
      [1000, 2001],
    ]);
  });

  it('never has anything of a value in its text', () => {
    const attempts = [
      "'; drop table entry; --",
      '" or 1=1 --',
      '$1',
      "\\'; select 1",
      'x\\',
      "%' or '1'='1",
      '::text',
      '/*',
      '*/',
      ...hardNames,
    ];
    for (const attempt of attempts) {
      const quoted = `"${attempt.replaceAll(/["\\]/g, '\\$&')}"`;
      const query = `actor:${quoted} entity:(${quoted}, a*) entityId:${quoted} related.entity:${quoted} related:elemMatch(entityId:${quoted})`;
      const harmless = query.replaceAll(quoted, 'x');
      expect(compile(query)[0]).toBe(compile(harmless)[0]);
    }
    for (const attempt of attempts.filter((each) => canBeBare(['', each, ''], true, true))) {
      expect(compile(`actor:(*${attempt.replaceAll(/[*(),\\]/g, '\\$&')}*)`)[0]).toBe(compile('actor:(*x*)')[0]);
    }
  });
});

describe('on the database', () => {
  let database: TestDatabase;
  const start = Date.UTC(2026, 7, 31, 12);
  const names = hardNames.filter((name) => !name.includes('\t'));
  const pick = <Value>(values: readonly Value[], index: number): Value => {
    const value = values[index % values.length];
    if (value === undefined) throw new Error('no values');
    return value;
  };
  const entries: HistoryEntry[] = Array.from({ length: 300 }, (_, index) => ({
    at: start + pick([0, 1, -1, 500, -86_400_000, 86_400_000], index),
    type: pick(['create', 'update', 'delete'], index),
    entity: pick(['order', 'customer', ...names], index * 7),
    entityId: pick(['1', '2', ...names], index * 5),
    actor: pick(names, index),
    related: Array.from({ length: index % 3 }, (_, item) => ({
      entity: pick(['order', 'customer', ...names], index + item),
      entityId: pick(['1', '2', ...names], index * 3 + item),
    })),
  }));

  beforeAll(async () => {
    database = await createTestDatabase();
    await sql`create table entry (number bigint, at bigint, type text, entity text, entity_id text, actor text, related jsonb)`.execute(
      database.db,
    );
    await sql`insert into entry select number, at, type, entity, "entityId", actor, related from jsonb_to_recordset(${JSON.stringify(
      entries.map((entry, number) => ({ number, ...entry })),
    )}::jsonb) as row(number bigint, at bigint, type text, entity text, "entityId" text, actor text, related jsonb)`.execute(
      database.db,
    );
  });
  afterAll(() => database.drop());

  it('a query finds what a plain evaluator finds', async () => {
    const seed = fuzzSeed('SQL of queries');
    const vocabulary = {
      entities: ['order', 'customer', ...names],
      entityIds: ['1', '2', ...names],
      actors: names,
      expressions: hardExpressions,
      times: [start],
    };
    const mapping = mappingOf(['order', 'customer', '1', '2', ...names]);
    await fc.assert(
      fc.asyncProperty(arbitraryQuery(vocabulary), async ({ query }) => {
        const statement = sql<{
          number: string;
        }>`select number from entry where ${queryToSql(query, mapping)} order by number`;
        const { rows } = await statement.execute(database.db);
        const expected = entries.flatMap((entry, number) => (matches(query, entry, 0) ? [number] : []));
        expect(rows.map(({ number }) => Number(number))).toEqual(expected);
      }),
      { numRuns: 500, seed },
    );
  });
});
