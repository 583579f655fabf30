import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { createSourceDatabase, startSourceServer } from '../../support/server/source-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const server = closeAfterAll(await startSourceServer());
const folder = temporaryFolder();

/** A database with tables, seen by a role that may only connect, and the commands with the mapping of these tables. */
async function open(sql: string, tables: Record<string, object>) {
  const source = await createSourceDatabase(server);
  const role = `role_${randomBytes(4).toString('hex')}`;
  await source.pool.query(`${sql}; create role ${role} login password 'x'`);
  onTestFinished(async () => void (await source.pool.query(`drop owned by ${role}; drop role ${role}`)));
  const url = new URL(source.url);
  [url.username, url.password] = [role, 'x'];
  const file = join(folder, 'mapping.json');
  await writeFile(file, JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables }));
  const check = (...args: string[]) => annals(['mapping', 'check', file, '--from', url.href, ...args]);
  return { pool: source.pool, role, check, script: () => check('--sql') };
}

test('one script gives capture all that it lacks, and then it lacks nothing', async () => {
  const { pool, role, script, check } = await open(
    `create schema "Sales Dept";
     create table "Sales Dept"."or""der" (id int primary key, title text);
     create table loose (id int);
     create table parted (id int primary key, name text) partition by range (id);
     create table parted_1 partition of parted for values from (0) to (10)`,
    {
      'Sales Dept.or"der': { entity: 'order', name: 'title' },
      'public.loose': { entity: 'loose', id: ['id'] },
      'public.parted': { entity: 'part', name: 'name' },
    },
  );
  const made = await script();
  expect({ code: made.code, stderr: made.stderr }).toEqual({ code: 0, stderr: '' });
  const [before = '', within = ''] = made.stdout.split('begin;\n');
  expect(before).toContain(`alter role "${role}" replication;`);
  await pool.query(before);
  await pool.query(`begin;\n${within}`);
  const { rows } = await pool.query(
    "select schemaname, tablename from pg_publication_tables where pubname = 'annals' order by 2",
  );
  expect(rows.map(({ tablename }) => tablename)).toEqual(['loose', 'or"der', 'parted']);
  await pool.query('insert into loose values (1); update loose set id = 2');
  await pool.query("insert into parted values (1, 'a'); update parted set name = 'b'");
  expect((await script()).stdout).toBe('-- Capture lacks nothing that a statement could give it.\n');
  expect(await check()).toMatchObject({ code: 0, stderr: '' });
});

test('a table that no statement helps is named, not published, and cannot put a statement into the script', async () => {
  const unlogged = 'x\ndrop table victim;';
  const { pool, script } = await open(
    `create table victim (id int primary key, title text);
     create unlogged table "${unlogged}" (id int primary key);
     create table good (id int primary key)`,
    {
      [`public.${unlogged}`]: { entity: 'unlogged' },
      'public.victim': { entity: 'victim', name: 'titel' },
      'public.good': { entity: 'good' },
      'public.gone': { entity: 'gone' },
    },
  );
  const { code, stdout, stderr } = await script();
  expect(code).toBe(1);
  for (const fault of ['has no column titel', 'writes no log', 'the source has no table public.gone'])
    for (const output of [stdout, stderr]) expect(output).toContain(fault);
  await pool.query(stdout.slice(stdout.indexOf('begin;')));
  const { rows } = await pool.query("select tablename from pg_publication_tables where pubname = 'annals'");
  expect(rows).toEqual([{ tablename: 'good' }]);
  await pool.query("insert into victim values (1, 'a'); update victim set title = 'b'");
});

test('what many tables lack is said once', async () => {
  const names = Array.from({ length: 5 }, (_, n) => `t${n}`);
  const { check } = await open(
    names.map((name) => `create table ${name} (id int primary key, title text)`).join(';'),
    Object.fromEntries(
      names.map((name, n) => [`public.${name}`, { entity: name, ...(n < 3 ? { name: 'title' } : {}) }]),
    ),
  );
  const { code, stdout, stderr } = await check();
  expect(code).toBe(1);
  expect(stderr.trimEnd().split('\n')).toEqual([
    'annals: the replica identity of these tables lacks columns of the mapping: public.t0 (title), public.t1 (title), public.t2 (title); --sql prints the statements',
    expect.stringMatching(
      /^annals: note: the log of these tables has only the key .*: public\.t0, .*public\.t4; --sql prints/,
    ),
  ]);
  const [first] = stdout.split('\n').map((line) => (line === '' ? undefined : JSON.parse(line)));
  expect(first.missing).toEqual([
    {
      message: 'public.t0: title is not in its replica identity',
      statement: 'alter table "public"."t0" replica identity full;',
    },
  ]);
});

test('wrong usage', async () => {
  const { check } = await open('select 1', { 'public.a': { entity: 'a' } });
  expect(await check('--slot', 'No')).toMatchObject({ code: 2, stdout: '' });
  expect(await annals(['mapping', 'check', join(folder, 'mapping.json'), '--sql'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('the source is missing'),
  });
});
