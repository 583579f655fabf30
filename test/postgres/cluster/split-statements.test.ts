import { expect, test } from 'vitest';
import { splitStatements } from '../../../src/postgres/migrate/migrate.ts';

test('statements end at semicolons, but not in comments, quotes and bodies of routines', () => {
  const text = `-- one; of many
create table a (b text default ';', "c;d" text);
/* not; here */ do $$ begin perform 1; end $$; select 'it''s; fine' , $x$ a; $$ b; $x$;
-- the end;
`;
  expect(splitStatements(text).map((statement) => statement.trim())).toEqual([
    `-- one; of many\ncreate table a (b text default ';', "c;d" text)`,
    '/* not; here */ do $$ begin perform 1; end $$',
    `select 'it''s; fine' , $x$ a; $$ b; $x$`,
  ]);
  expect(splitStatements('-- nothing;\n')).toEqual([]);
  expect(splitStatements('select 1')).toEqual(['select 1']);
});
