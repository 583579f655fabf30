import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageFolder } from '../../../src/core/package-folder.ts';
import { type Routine, readRoutines } from '../../../src/postgres/schema/read-schema.ts';
import { faultsOfRoutine, faultsOfStore, type KnownTables, tablesOf } from '../../support/cluster-faults.ts';

// Reads of all tenants. Only operators, captures and metrics use them, and they fail while a worker is away.
const allowed = [
  'sources/capture/record-captured.ts',
  'postgres/cluster/move-tenant.ts',
  'context/installation-figures.ts',
  'proof/verify/check-store.ts',
  // Once, at the start of a version.
  'postgres/schema/adopt-baseline.ts',
  // A backup is restored into a database that is not distributed yet.
  'delivery/subscriptions/pause-all.ts',
];

// Their records have numbers, arrays and snapshots alone.
const recordsWithoutTexts = [
  'history/change_count_parts.sql',
  'history/change_position_give.sql',
  'history/receipt_write.sql',
];

let routines: Routine[];
let tables: KnownTables;

beforeAll(async () => {
  const folder = join(packageFolder(), 'migrations');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql'));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')));
  routines = await readRoutines(join(packageFolder(), 'sql'), 'distributed');
  const known = tablesOf(texts);
  const readers = new Set(
    routines.filter(({ text }) => isOfTenant(text) && readsTables(text, known.distributed)).map(({ name }) => name),
  );
  tables = { ...known, routines: readers, readers };
});

const isOfTenant = (text: string) => /^create function \w+\(\s*of_tenant text/m.test(text);
const readsTables = (text: string, distributed: ReadonlySet<string>) =>
  /change_(count|total|horizon)\(/.test(text) ||
  [...text.matchAll(/\b(?:from|into|update) (\w+)\b/g)].some(([, name = '']) => distributed.has(name));

test('the tables of tenants and the others are those of the migrations', () => {
  expect([...tables.distributed]).toEqual(expect.arrayContaining(['tenant', 'change_entry', 'job', 'console_link']));
  expect([...tables.local].sort()).toEqual([
    'capture_position',
    'capture_table',
    'database_origin',
    'found_work',
    'installation',
    'logout_token',
    'oauth_signing_key',
  ]);
  expect([...tables.routines]).toEqual(
    expect.arrayContaining(['change_count', 'change_read', 'record_entries_numbered']),
  );
});

test('no routine of a cluster has a statement that a cluster refuses', () => {
  // Routines call each other on the worker, and that is allowed outside of statements about tables.
  const faults = routines.flatMap(({ file, text }) =>
    faultsOfRoutine(text, { ...tables, routines: new Set() }).map((fault) => ({ file, ...fault })),
  );
  const isExcepted = ({ file, rule }: (typeof faults)[number]) =>
    rule === 'text of a record' && recordsWithoutTexts.includes(file);
  expect(faults.filter((fault) => !isExcepted(fault))).toEqual([]);
});

test('no routine of a cluster keeps a plan for all tenants, and none in language SQL reads tables of its parameter', () => {
  expect(routines.filter(({ text }) => text.includes('force_generic_plan')).map(({ file }) => file)).toEqual([]);
  const inSql = routines.filter(
    ({ text }) => isOfTenant(text) && /language sql/.test(text) && readsTables(text, tables.distributed),
  );
  expect(inSql.map(({ file }) => file)).toEqual([]);
});

test('no store has a statement that a cluster refuses', async () => {
  const folder = join(packageFolder(), 'src');
  const found: object[] = [];
  for (const file of (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'))) {
    const faults = faultsOfStore(await readFile(join(folder, file), 'utf8'), tables);
    if (!allowed.includes(file)) found.push(...faults.map((fault) => ({ file, ...fault })));
    else expect(faults, `${file} needs no exception any more`).not.toEqual([]);
  }
  expect(found).toEqual([]);
});

describe('it finds a planted', () => {
  const inStore = (text: string) => faultsOfStore(`const rows = await sql\`${text}\`.execute(db);`, tables);
  const rules = (faults: readonly { rule: string }[]) => faults.map(({ rule }) => rule);

  test('volatile function in a condition', () => {
    const condition = 'select * from mail where tenant = $1 and due_at <= clock_timestamp()';
    expect(rules(inStore(condition))).toEqual(['volatile condition']);
    expect(rules(inStore(condition.replace('clock_', 'statement_')))).toEqual([]);
    const chain = "db.selectFrom('mail').where('tenant', '=', tenant).where('due_at', '<=', sql`clock_timestamp()`)";
    expect(rules(faultsOfStore(`${chain}.execute();\n`, tables))).toEqual(['volatile condition']);
    const body = (moment: string) =>
      `$$ begin delete from mail where tenant = of_tenant and due_at < ${moment}; end $$`;
    expect(rules(faultsOfRoutine(body('clock_timestamp()'), tables))).toEqual([
      'volatile condition',
      'volatile update',
    ]);
    expect(rules(faultsOfRoutine(body('moment'), tables))).toEqual([]);
  });

  test('volatile function, or a moment in a case, a conflict or an answer, of a statement that writes', () => {
    const update = (set: string, rest = '') => rules(inStore(`update mail set ${set} where tenant = $1 ${rest}`));
    expect(update('sent_at = clock_timestamp()')).toEqual(['volatile update']);
    expect(update('message_id = gen_random_uuid()')).toEqual(['volatile update']);
    expect(rules(inStore('delete from mail where tenant = $1 and random() < 0.5'))).toContain('volatile update');
    expect(update('sent_at = statement_timestamp()')).toEqual([]);
    const chain = (moment: string) =>
      `db.updateTable('mail').set({ sent_at: sql\`${moment}\` }).where('tenant', '=', tenant).execute();\n`;
    expect(rules(faultsOfStore(chain('clock_timestamp()'), tables))).toEqual(['volatile update']);
    expect(rules(faultsOfStore(chain('statement_timestamp()'), tables))).toEqual([]);
    expect(update('due_at = case when sent_at is null then statement_timestamp() else due_at end')).toEqual([
      'moment in case',
    ]);
    expect(update('due_at = coalesce(due_at, now())')).toEqual(['moment in case']);
    expect(update('attempts = 1', 'returning due_at <= now() as due')).toEqual(['moment in returning']);
    const insert = 'insert into mail (tenant, due_at) values ($1, now()) on conflict (tenant) do update set due_at =';
    expect(rules(inStore(`${insert} now()`))).toEqual(['moment in conflict']);
    expect(rules(inStore(`${insert} excluded.due_at`))).toEqual([]);
    const before = 'with b as (select case when due_at < now() then now() end as at from mail where tenant = $1)';
    expect(rules(inStore(`${before} update mail m set due_at = b.at from b where m.tenant = $1`))).toEqual([]);
  });

  test('interval that is added to a column where it writes, and a case of a value', () => {
    const update = (set: string) => rules(inStore(`update mail set ${set} where tenant = $1`));
    expect(update("due_at = due_at - $2 * interval '1 s'")).toEqual(['interval of a column']);
    expect(update("due_at = statement_timestamp() + $2 * interval '1 s'")).toEqual([]);
    const chain = (set: string) =>
      `db.updateTable('mail').set({ due_at: sql\`${set} + 1 * interval '1 s'\` }).where('tenant', '=', tenant).execute();\n`;
    expect(rules(faultsOfStore(chain('created_at'), tables))).toEqual(['interval of a column']);
    expect(rules(faultsOfStore(chain('statement_timestamp()'), tables))).toEqual([]);
    expect(update("attempts = case $2 when 'away' then 1 else 0 end")).toEqual(['case of a value']);
    expect(update("attempts = case when $2 = 'away' then 1 else 0 end")).toEqual([]);
  });

  test('transaction of the coordinator in a row, and routine that the coordinator calls for each row', () => {
    const registered = 'update change_actor set registered = pg_current_xact_id() where tenant = $1';
    expect(rules(inStore(registered))).toEqual(['transaction of the coordinator']);
    const spent =
      "select units from budget_days('day', 1) cross join budget_spent($1, 'all', '', true, first, last) as units";
    expect(rules(inStore(spent))).toEqual(['routine beside another']);
    expect(rules(inStore("select spent from budget_figures($1, 'all', '', 'day', true, 1)"))).toEqual([]);
  });

  test('text of a record that a routine hands to another routine of the tenant', () => {
    const body = (name: string) => `$$ begin free := budget_spent(of_tenant, 'all', ${name}, true, 1, 2); end $$`;
    expect(rules(faultsOfRoutine(body('one.name'), tables))).toEqual(['text of a record']);
    expect(rules(faultsOfRoutine(body('one_name'), tables))).toEqual([]);
  });

  test('assignment of what tables say to an element of an array', () => {
    const body = (target: string) =>
      `$$ begin ${target} := (select min(k.kind) from change_kind k where k.tenant = of_tenant); end $$`;
    expect(rules(faultsOfRoutine(body('kinds[i]'), tables))).toEqual(['table in element']);
    expect(rules(faultsOfRoutine(body('kind'), tables))).toEqual([]);
  });

  test('join of local and distributed tables', () => {
    const joined = 'select c.name from oauth_client c cross join installation i where c.tenant = $1';
    expect(rules(inStore(joined))).toEqual(['local with distributed']);
    expect(rules(inStore(joined.replace('installation', 'configuration')))).toEqual([]);
  });

  test('statement without the tenant', () => {
    expect(rules(inStore('delete from job where id = $2'))).toEqual(['no tenant']);
    expect(rules(inStore('delete from job where tenant = $1 and id = $2'))).toEqual([]);
    expect(rules(inStore('insert into mail (tenant, message_id) values ($1, $2)'))).toEqual([]);
    expect(rules(inStore('insert into mail (message_id) values ($2)'))).toEqual(['no tenant']);
    const chain = "db\n.deleteFrom('job')\n.where('id', '=', id)\n.execute();\n";
    expect(rules(faultsOfStore(chain, tables))).toEqual(['no tenant']);
    expect(rules(faultsOfStore(chain.replace('.where', ".where('tenant', '=', tenant)\n.where"), tables))).toEqual([]);
    const ofKeys = (keys: string) => chain.replace(".where('id', '=', id)", `.where(({ and }) => and({ ${keys} }))`);
    expect(rules(faultsOfStore(ofKeys('id, tenants: 1'), tables))).toEqual(['no tenant']);
    expect(rules(faultsOfStore(ofKeys('tenant, id'), tables))).toEqual([]);
  });

  test('routine of a tenant in a statement about tables', () => {
    const call = 'select change_horizon(tenant, 1) from change_retention where tenant = $1';
    expect(rules(inStore(call))).toEqual(['routine with tables']);
    expect(rules(inStore('select change_horizon($1, 1)'))).toEqual([]);
  });
});
