import { expect, test } from 'vitest';
import { readStatement } from '../../../clients/typescript/src/pg/statements.ts';

test.each([
  ['insert into t values (1)', 'write'],
  ['  \n/* a /* nested */ comment */ -- and another\n UPDATE t set a = 1', 'write'],
  [';;delete from t', 'write'],
  ['merge into t using s on true when matched then delete', 'write'],
  ['with a as (insert into t values (1) returning id) select * from a', 'write'],
  ['with a as materialized (\n delete from t returning id) select * from a', 'write'],
  ['with a as (select 1) insert into t select * from a', 'write'],
  ['with recursive a as (select 1) search depth first by n set o update t set a = 1', 'write'],
  ["with a as (select 'insert into t') select * from a", 'other'],
  ['with a as (select $$delete from t$$, $x$ $$ insert $x$) select * from a', 'other'],
  ['with a as (select * from t for update) select * from a for no key update', 'other'],
  ["with a as (select e'it\\'s (insert') select t.update from a as delete", 'other'],
  ['with a as (select 1 /* (insert */) select "insert" from a', 'other'],
  ['copy t from stdin', 'write'],
  ['copy t (a, b) from program $$x$$', 'write'],
  ['copy t to stdout', 'other'],
  ['copy (select * from t) to stdout', 'other'],
  ['truncate t', 'write'],
  ['select 1', 'other'],
  ['call p()', 'other'],
  ['do $$ begin insert into t values (1); end $$', 'other'],
  ['explain analyze insert into t values (1)', 'other'],
  ['create table t (id int)', 'other'],
  ['begin isolation level serializable', 'begin'],
  ['start transaction', 'begin'],
  ['commit and chain', 'end'],
  ['rollback to a', 'end'],
  ['set transaction read only', 'quiet'],
  ['lock table t', 'quiet'],
  ['savepoint a', 'quiet'],
  ['declare c cursor for select 1', 'quiet'],
  ['inserted()', 'other'],
  ['', 'other'],
  ['-- insert into t', 'other'],
  ["'insert'", 'other'],
])('%s', (text, kind) => {
  expect(readStatement(text).kind).toBe(kind);
});

test.each([
  ['insert into t values (1)', true],
  ['insert into t values (1);', true],
  ['insert into t values (1); -- end;\n ; /* ; */', true],
  ['insert into t values (\';\', "a;b", $$;$$)', true],
  ["insert into t values (e'\\';')", true],
  ['insert into t values (1); select 1', false],
  [';; insert into t values (1); $$a$$', false],
])('%s: %s, it has one statement', (text, isSingle) => {
  expect(readStatement(text).isSingle).toBe(isSingle);
});

test('a long text is read in a time that grows with its length', () => {
  const long = 200_000;
  for (const part of [' ', '-- a\n', '-- -- ', ';', '(', "'", "e'\\", '/*', '$a$', '$', 'a$'])
    for (const start of ['', 'with ', 'copy ', 'insert ; ']) {
      const { kind } = readStatement(`${start}${part.repeat(long)}1`);
      expect(['write', 'other']).toContain(kind);
    }
});
