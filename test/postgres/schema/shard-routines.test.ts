import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageFolder } from '../../../src/core/package-folder.ts';
import {
  createForShard,
  isForShards,
  preferShardRoutine,
  type Routine,
  readRoutines,
} from '../../../src/postgres/schema/read-schema.ts';
import { tablesOf } from '../../support/cluster-faults.ts';

const folder = join(packageFolder(), 'migrations');
const files = (await readdir(folder)).filter((name) => name.endsWith('.sql'));
const { distributed } = tablesOf(await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8'))));
const names = { schema: 'annals_shard_7', tables: new Map([...distributed].map((name) => [name, `public.${name}_8`])) };
const routines = (await readRoutines(join(packageFolder(), 'sql'), 'shard')).filter(isForShards);

/** The body of the statement that creates a routine, without comments and texts in quotes. */
const bodyOf = (statement: string) =>
  (/\$\$([\s\S]*)\$\$/.exec(statement)?.[1] ?? '').replaceAll(/--[^\n]*/g, '').replaceAll(/'[^'\n]*'/g, "''");

/**
 * Names of distributed tables in a body. "tenant" and "job" are columns too, so those count only where a table stands.
 */
function tablesIn(body: string): string[] {
  const history = [...names.tables.keys()].filter((name) => /^(change|usage)_/.test(name));
  const named = [...body.matchAll(/(?<![\w.])(\w+)\b(?!\()/g)].map(([, name = '']) => name);
  const placed = [...body.matchAll(/\b(?:from|join|into|update|table|,)\s+(?:only\s+)?(\w+)\s+\w/g)].map(
    ([, name = '']) => name,
  );
  return [...named.filter((name) => history.includes(name)), ...placed.filter((name) => names.tables.has(name))];
}

test('a routine of a shard names the tables and routines of the shard alone', () => {
  expect(routines.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'change_read',
      'change_read_documents',
      'change_count',
      'change_fold',
      'record_entries_numbered',
    ]),
  );
  for (const routine of routines) {
    const statement = createForShard(routine, routines, names);
    expect(statement).toContain(`create function annals_shard_7.${routine.name}(`);
    expect({ routine: routine.name, tables: tablesIn(bodyOf(statement)) }).toEqual({
      routine: routine.name,
      tables: [],
    });
    const called = [...bodyOf(statement).matchAll(/(?<![\w.])(\w+)\(/g)].map(([, name = '']) => name);
    expect(called.filter((name) => routines.some((each) => each.name === name))).toEqual([]);
  }
});

test('the check of tables finds one that was left', () => {
  const [routine] = routines.filter(({ name }) => name === 'change_summary');
  expect(tablesIn(bodyOf(routine?.text ?? ''))).toContain('change_entry');
});

test('a routine that reads its shard alone keeps the plans that it has on one server', () => {
  const [read] = routines.filter(({ name }) => name === 'change_read');
  if (read === undefined) throw new Error('change_read is missing');
  expect(createForShard(read, routines, names)).toContain('set plan_cache_mode = force_generic_plan');
});

test('a routine of a cluster first looks for that of the shard, with each parameter in its place', () => {
  const routine = (name: string, text: string): Routine => ({
    name,
    text,
    kind: 'function',
    file: `${name}.sql`,
    indexed: false,
  });
  const body = '$$\ndeclare\n  a int;\nbegin\n  return 1;\nend\n$$;';
  const scalar = preferShardRoutine(
    routine(
      'one',
      `create function one(of_tenant text, now bigint default 1)\nreturns bigint[] language plpgsql stable as ${body}`,
    ),
  );
  expect(scalar.text).toBe(`create function one(of_tenant text, now bigint default 1)
returns bigint[] language plpgsql stable as $$
declare
  shard_schema constant text := shard_routines(of_tenant);
  shard_result bigint[];
begin
  if shard_schema is not null then
    execute format('select %I.one($1, $2)', shard_schema) into shard_result using of_tenant, now;
    return shard_result;
  end if;
declare
  a int;
begin
  return 1;
end;
end
$$;`);
  const set = preferShardRoutine(
    routine(
      'two',
      `create function two(of_tenant text)\nreturns table (a int) language plpgsql stable as ${body.replace('$$\n', '$$$$\n#variable_conflict use_column\n')}`,
    ),
  );
  expect(set.text).toMatch(/as \$\$\n#variable_conflict use_column\n+declare\n/);
  expect(set.text).toContain(
    "return query execute format('select * from %I.two($1)', shard_schema) using of_tenant;\n    return;",
  );
});

test('a routine that writes takes the lock of a write first, and one that is no routine of a shard stays as it is', async () => {
  const cluster = await readRoutines(join(packageFolder(), 'sql'), 'distributed');
  const changed = cluster.filter((routine) => preferShardRoutine(routine).text !== routine.text);
  const writing = changed.filter((routine) =>
    preferShardRoutine(routine).text.includes('shard_routines_to_write(of_tenant)'),
  );
  expect(writing.map(({ name }) => name).sort()).toEqual([
    'change_fold',
    'change_position_give',
    'change_position_mark',
    'change_position_write',
    'path_register',
    'receipt_write',
    'record_entries_numbered',
  ]);
  const same = cluster.filter((routine) => !changed.includes(routine)).map(({ name }) => name);
  // Those with out parameters, those about places, and those of one or two statements that write.
  expect(same).toEqual(expect.arrayContaining(['change_places', 'change_placement', 'change_lineage']));
  expect(changed.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['change_read', 'change_facet_values', 'change_horizon']),
  );
});
