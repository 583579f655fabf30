import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { useHistory } from '../history.ts';
import { type Application, createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

/** An AFTER trigger of the application for rows: Annals then writes row by row. */
const nothing = `create function nothing() returns trigger language plpgsql as 'begin return null; end'`;
const audit = (table: string) =>
  `create trigger audit after update on ${table} for each row execute function nothing()`;

async function outboxOf({ pool }: Application) {
  const { rows } = await pool.query(
    `select source, before, after, document, fault from annals.outbox where lane >= 0 order by number`,
  );
  return rows;
}

/** What was rejected, as an operator reads it. The content stays sealed here. */
async function rejectedOf({ history }: Application): Promise<string[]> {
  const { rows } = await history.pool.query('select reason from change_rejected order by reason');
  return rows.map(({ reason }) => reason);
}

describe('a column may have any name', () => {
  const sample = outboxSql(
    readMapping(JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables: { 'public.t': { entity: 't' } } })),
  );
  const letters = Array.from({ length: 26 }, (_, index) => String.fromCharCode(97 + index));
  const system = ['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid'];

  test.each(['once a statement', 'row by row', 'in partitions'])(
    'each keyword, letter and word of the SQL itself, where triggers run %s',
    async (how) => {
      const application = await createApplication(openHistory(), nothing, {});
      const { pool } = application;
      const { rows: keywords } = await pool.query<{ word: string }>('select word from pg_get_keywords()');
      const words = new Set([
        ...letters,
        ...keywords.map(({ word }) => word),
        ...(sample.match(/[a-z_]+[0-9]?/gi) ?? []),
      ]);
      const names = [...words].filter((name) => name !== 'id' && !system.includes(name) && name.length < 64);
      expect(names).toContain('ignored');
      // A table has at most 1,600 columns.
      const columns = names.slice(0, 1_500).map((name) => pg.escapeIdentifier(name));
      expect(names.length).toBeLessThan(1_500);
      await pool.query(
        `create table words (id int primary key, ${columns.map((name) => `${name} text`).join(', ')})
           ${how === 'in partitions' ? 'partition by range (id)' : ''}`,
      );
      if (how === 'in partitions') await pool.query('create table words_1 partition of words default');
      if (how === 'row by row') await pool.query(audit('words'));
      Object.assign(application.mapping, {
        tables: { 'public.words': { entity: 'word', mask: ['secret', 't', 'q'] } },
      });
      if (!names.includes('secret')) await pool.query('alter table words add secret text');
      await application.install();
      await pool.query('insert into words (id) values (1)');
      await pool.query(`update words set ${columns.map((name) => `${name} = 'x'`).join(', ')}, secret = 'canary'`);
      await pool.query('delete from words');
      await pool.query(`insert into words (id, t, secret) values (2, 'canary', 'canary')`);
      await pool.query('truncate words');
      const rows = await outboxOf(application);
      expect(rows.map(({ before, after, fault }) => [before?.id, after?.id, fault])).toEqual([
        [undefined, 1, null],
        [1, 1, null],
        [1, undefined, null],
        [undefined, 2, null],
        [2, undefined, null],
      ]);
      expect(Object.keys(rows[1].after)).toHaveLength(names.length + (names.includes('secret') ? 1 : 2));
      expect(rows[1].after.ignored).toBe('x');
      expect(JSON.stringify(rows)).not.toContain('canary');
    },
  );

  // What stands for the row where a column has the name of an alias may be a document of its own.
  test.each([
    't',
    'q',
    'r',
    'c',
    'o',
    'n',
    'one',
    'old',
    'new',
    'old_row',
    'new_rows',
    'before',
    'after',
    'trigger',
    'ignored',
    'target',
    'words',
  ])('a jsonb column %s that looks like a row, also as the key', async (name) => {
    const column = pg.escapeIdentifier(name);
    const application = await createApplication(
      openHistory(),
      `create table words (id int, ${column} jsonb, primary key (id, ${column}));
         create table secrets (id int primary key, ${column} jsonb)`,
      { 'public.words': { entity: 'word' }, 'public.secrets': { entity: 'secret', mask: [name] } },
    );
    const value = '{"id": 7, "a": "canary"}';
    for (const table of ['words', 'secrets']) {
      await application.pool.query(`insert into ${table} values (1, $1)`, ['{"id": 6}']);
      await application.pool.query(`update ${table} set ${column} = $1`, [value]);
      await application.pool.query(`truncate ${table}`);
    }
    const rows = await outboxOf(application);
    expect(rows.filter(({ source }) => source === 'public.words').map(({ before }) => before)).toEqual([
      null,
      { id: 1, [name]: { id: 6 } },
      { id: 1, [name]: { id: 6 } },
      { id: 1, [name]: JSON.parse(value) },
    ]);
    expect(
      rows.filter(({ source }) => source === 'public.secrets').map(({ before, after }) => [before, after]),
    ).toEqual([
      [null, { id: 1, [name]: '0' }],
      [
        { id: 1, [name]: '0' },
        { id: 1, [name]: '1' },
      ],
      [{ id: 1, [name]: '0' }, null],
    ]);
  });
});

describe('what cannot be recorded is rejected with its table and key, and the statement of the application succeeds', () => {
  const bad = [`'{"a": "\\u0000"}'`, `'[1e999999]'`, `'{"a": "\\ud800"}'`];

  test.each([
    ['once a statement', ''],
    ['row by row', `${nothing}; ${audit('docs')}; ${audit('pairs')}`],
  ])('a json value that jsonb cannot represent, in each statement, where triggers run %s', async (_how, triggers) => {
    const application = await createApplication(
      openHistory(),
      `create table docs (dropped int, id int primary key, doc json, secret text); alter table docs drop column dropped;
       create table pairs (doc json, "a,b" text, b int, primary key ("a,b", b)); ${triggers}`,
      { 'public.docs': { entity: 'doc', mask: ['secret'] }, 'public.pairs': { entity: 'pair' } },
    );
    const { pool } = application;
    for (const value of bad) {
      await pool.query(`insert into docs (id, doc, secret) values (1, ${value}, 'canary'), (2, '1', 'canary')`);
      await pool.query(`update docs set secret = 'canary-2'`);
      await pool.query(`delete from docs where id = 1; insert into docs (id, doc) values (3, ${value})`);
      await pool.query(`insert into pairs values (${value}, 'x,y', 5); truncate docs, pairs`);
    }
    const rows = await outboxOf(application);
    const ofOne = rows.slice(0, rows.length / bad.length);
    const key = (id: string) => ['public.docs', { key: { id } }];
    expect(ofOne.filter(({ fault }) => fault !== null).map(({ source, document }) => [source, document])).toEqual([
      ...[key('1'), key('1'), key('1'), key('3')],
      ['public.pairs', { key: { 'a,b': 'x,y', b: '5' } }],
      key('3'),
      ['public.pairs', { key: { 'a,b': 'x,y', b: '5' } }],
    ]);
    expect(ofOne.filter(({ fault }) => fault === null).map(({ before, after }) => [before?.id, after?.id])).toEqual([
      [undefined, 2],
      [2, 2],
      [2, undefined],
    ]);
    expect(JSON.stringify(rows)).not.toContain('canary');
    startRelay(application);
    await eventually(() => entriesOf(application.history)).toHaveLength(3 * bad.length);
    await eventually(() => rejectedOf(application)).toHaveLength(7 * bad.length);
  });

  test('a change beyond 128 MiB, and not one below', async () => {
    const application = await createApplication(
      openHistory(),
      'create table files (id int primary key, content text, secret text)',
      { 'public.files': { entity: 'file', mask: ['secret'] } },
    );
    const { pool } = application;
    // As JSON each of these characters is six bytes.
    await pool.query(`insert into files values (1, repeat(chr(1), 5 << 20), 'canary')`);
    await pool.query(`update files set content = repeat(chr(1), 17 << 20)`);
    await pool.query('truncate files');
    const { rows } = await pool.query(
      `select octet_length(before ->> 'content') >> 20 as before, octet_length(after ->> 'content') >> 20 as after, document, fault
         from annals.outbox where lane >= 0 order by number`,
    );
    expect(rows).toEqual([
      { before: null, after: 5, document: null, fault: null },
      { before: null, after: null, document: { key: { id: '1' } }, fault: 'the change has more than 128 MiB' },
      { before: 17, after: null, document: null, fault: null },
    ]);
  });

  test('a truncate below row-level security, and it is recorded where the owner of the outbox may bypass that', async () => {
    const application = await createApplication(
      openHistory(),
      `create table own (id int primary key); alter table own enable row level security;
       create table forced (id int primary key); alter table forced enable row level security, force row level security;
       create table revoked (id int primary key)`,
      Object.fromEntries(['own', 'forced', 'revoked'].map((name) => [`public.${name}`, { entity: name }])),
    );
    const { pool } = application;
    await pool.query(`revoke select on revoked from annals_outbox; insert into own values (1); insert into forced values (1);
      insert into revoked values (1); truncate own, forced, revoked`);
    const faults = (await outboxOf(application)).flatMap(({ source, fault }) =>
      fault === null ? [] : [[source, fault]],
    );
    const hidden = (table: string) =>
      `row-level security hides the rows of ${table} from annals_outbox: a truncate deleted them without entries. ` +
      'A superuser can change that: alter role annals_outbox bypassrls';
    expect(faults).toEqual([
      ['public.own', hidden('public.own')],
      ['public.forced', hidden('public.forced')],
      ['public.revoked', 'the rows of public.revoked, which a truncate deleted, cannot be read (SQLSTATE 42501)'],
    ]);
    startRelay(application);
    await eventually(() => rejectedOf(application)).toHaveLength(3);
    // The role is the server's, and other tests use it: it gets the right in a transaction that is rolled back.
    const client = await pool.connect();
    try {
      await client.query(`begin; alter role annals_outbox bypassrls; insert into forced values (2); truncate forced`);
      const { rows } = await client.query(
        'select before, fault from annals.outbox where lane >= 0 order by number desc limit 1',
      );
      expect(rows).toEqual([{ before: { id: 2 }, fault: null }]);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  test('a truncate above read committed: what its snapshot shows is recorded, and that there may be more', async () => {
    const application = await createApplication(openHistory(), 'create table orders (id int primary key)', {
      'public.orders': { entity: 'order' },
    });
    const { pool } = application;
    await pool.query('insert into orders values (1)');
    await pool.query('begin isolation level repeatable read; truncate orders; commit');
    expect((await outboxOf(application)).map(({ before, fault }) => [before, fault])).toEqual([
      [null, null],
      [{ id: 1 }, null],
      [
        null,
        'a truncate of public.orders above read committed: rows that were written after its snapshot are deleted without an entry',
      ],
    ]);
  });

  test('annals.record with values that cannot be written', async () => {
    const application = await createApplication(
      openHistory(),
      'select',
      {},
      { entities: { note: { mask: ['secret', '*.pin'] } } },
    );
    const { pool } = application;
    const calls = [
      `'note', '1', '[5]', '{"secret": {"pin": "canary"}}'`,
      `'note', '2', '"text"', '7'`,
      `null, null, '{}', null`,
      `'note', '3', null, to_jsonb(repeat(chr(1), 22 << 20))`,
    ];
    for (const call of calls) await pool.query(`select annals.record(${call})`);
    const rows = await outboxOf(application);
    expect(rows.map(({ document, fault }) => [document.entityId, fault])).toEqual([
      ['1', null],
      ['2', null],
      [undefined, null],
      ['3', 'the change has more than 128 MiB'],
    ]);
    expect(JSON.stringify(rows)).not.toContain('canary');
    startRelay(application);
    await eventually(() => rejectedOf(application)).toContain('the change has more than 128 MiB');
  });
});

describe('a statement of the application does not see the triggers', () => {
  const events = {
    'public.events': { entity: 'event', transactionActor: 'who' },
    'public.orders': { entity: 'order' },
  };
  const definition =
    'create table orders (id int primary key, title text); create table events (id int primary key, who text)';

  test('a transaction that names its actor may alter, truncate and become read-only before it commits', async () => {
    const application = await createApplication(openHistory(), definition, events);
    const { pool, history } = application;
    await pool.query(`begin; insert into orders values (1, 'one'); insert into events values (1, 'Ada');
      alter table events add note text; truncate events; set transaction read only; commit`);
    startRelay(application);
    await eventually(() => entriesOf(history)).toHaveLength(3);
    expect((await entriesOf(history)).map(({ actor }) => actor)).toEqual(['Ada', 'Ada', 'Ada']);
    await eventually(async () => (await pool.query('select from annals.outbox')).rowCount).toBe(0);
  });
});
