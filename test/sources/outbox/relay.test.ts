import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { measureRelay } from '../../../src/context/installation-figures.ts';
import { Metrics, textOf } from '../../../src/metrics/metrics.ts';
import { readSource } from '../../../src/postgres/source/source.ts';
import { trials } from '../../support/oracle/trials.ts';
import { startTracing, treesOf } from '../../support/server/collector.ts';
import { startAnnals, startHere } from '../../support/server/command.ts';
import { countOfEntries, entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { useHistory } from '../history.ts';
import { createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

const orders = 'create table orders (id int primary key, title text, total numeric)';
const tables = { 'public.orders': { entity: 'order', name: 'title' } };

test('whatever writes rows: each change is an entry, by the actor of its transaction', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const { pool, history } = application;
  startRelay(application);
  await pool.query(
    `begin; select set_config('annals.actor', 'Jane Doe', true), set_config('annals.context', '{"ip": "10.0.0.1"}', true);
     insert into orders values (1, 'one', 1.10); commit`,
  );
  await pool.query(`update orders set total = 2.50; update orders set total = 2.5`);
  await pool.query(`insert into orders values (1, 'new', 3) on conflict (id) do update set title = excluded.title`);
  await pool.query(
    `merge into orders o using (values (1), (2)) as v (id) on o.id = v.id
       when matched then delete when not matched then insert values (v.id, 'merged', 0)`,
  );
  await pool.query(`begin; insert into orders values (9, 'never', 9); rollback`);
  await pool.query('truncate orders');
  await eventually(() => entriesOf(history)).toHaveLength(6);
  const entries = await entriesOf(history);
  const byId = (id: string) =>
    entries
      .filter(({ entityId }) => entityId === id)
      .map(({ type, actor, context, paths }) => [type, actor, context, paths]);
  expect(byId('1')).toEqual([
    ['create', 'Jane Doe', '{"ip":"10.0.0.1"}', { id: { after: 1 }, title: { after: 'one' }, total: { after: 1.1 } }],
    ['update', 'unknown', null, { total: { before: 1.1, after: 2.5 } }],
    ['update', 'unknown', null, { title: { before: 'one', after: 'new' } }],
    ['delete', 'unknown', null, { id: { before: 1 }, title: { before: 'new' }, total: { before: 2.5 } }],
  ]);
  expect(byId('2')).toEqual([
    ['create', 'unknown', null, { id: { after: 2 }, title: { after: 'merged' }, total: { after: 0 } }],
    ['delete', 'unknown', null, { id: { before: 2 }, title: { before: 'merged' }, total: { before: 0 } }],
  ]);
  await eventually(async () => (await pool.query('select 1 from annals.outbox')).rowCount).toBe(0);
});

test('masked and ignored values are in neither database, and a change of a masked value is recorded', async () => {
  const application = await createApplication(
    openHistory(),
    'create table orders (id int primary key, card text, note text, payload jsonb, extra text)',
    {
      'public.orders': {
        entity: 'order',
        mask: ['card', 'payload.cards.number', 'payload.*.secret', 'extra.pin'],
        ignore: ['note', 'payload.etag'],
        json: ['extra'],
      },
    },
  );
  const { pool, history } = application;
  const payload = (number: string, etag: string) =>
    JSON.stringify({
      cards: [{ number }, { number: 'canary-2', kind: 'v' }],
      a: { secret: 'canary-3' },
      etag: `canary-${etag}`,
    });
  const insert = 'insert into orders values ($1, $2, $3, $4, $5)';
  await pool.query(insert, [1, 'canary-1', 'canary-n', payload('canary-4', 'x'), '{"pin":"canary-5","b":1}']);
  await pool.query('update orders set note = $1, payload = $2', ['canary-m', payload('canary-4', 'y')]);
  await pool.query('update orders set card = $1, payload = $2', ['canary-6', payload('canary-7', 'y')]);
  await pool.query('update orders set card = null');
  const waiting = await pool.query('select o::text as row from annals.outbox o');
  expect(waiting.rows.map(({ row }) => row).join()).not.toContain('canary');
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(3);
  const entries = await entriesOf(history);
  expect(JSON.stringify(entries)).not.toContain('canary');
  expect(entries.map(({ paths }) => paths)).toEqual([
    {
      id: { after: 1 },
      card: { after: '********' },
      'payload.a.secret': { after: '********' },
      'payload.cards': { after: [{ number: '********' }, { kind: 'v', number: '********' }] },
      'extra.pin': { after: '********' },
      'extra.b': { after: 1 },
    },
    {
      card: { before: '********', after: '********' },
      'payload.cards.0.number': { before: '********', after: '********' },
    },
    { card: { before: '********', after: null } },
  ]);
});

test('rows that are there already are recorded by the statements of the guide, and changes continue from them', async () => {
  const guide = await readFile(join(import.meta.dirname, '..', '..', '..', 'docs', 'recording', 'outbox.md'), 'utf8');
  const statements = /## Rows that are there already.*?```sql\n(.*?)```/s.exec(guide)?.[1] ?? '';
  const application = await createApplication(
    openHistory(),
    `create table orders (id int primary key, title text, card text, placed timestamptz);
     insert into orders values (1, 'one', 'canary', '2026-01-15 14:05:12+02')`,
    { 'public.orders': { entity: 'order', name: 'title', mask: ['card'] } },
  );
  const { pool, history } = application;
  expect(statements).toContain('annals.record');
  await pool.query(statements);
  await pool.query(`update orders set title = 'two', placed = '2026-01-15 14:05:12+01'`);
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(2);
  expect(
    (await entriesOf(history)).map(({ type, entityId, name, actor, paths }) => [type, entityId, name, actor, paths]),
  ).toEqual([
    [
      'create',
      '1',
      'one',
      'system',
      { id: { after: 1 }, title: { after: 'one' }, placed: { after: '2026-01-15T12:05:12+00:00' } },
    ],
    [
      'update',
      '1',
      'two',
      'unknown',
      {
        title: { before: 'one', after: 'two' },
        placed: { before: '2026-01-15T12:05:12Z', after: '2026-01-15T13:05:12Z' },
      },
    ],
  ]);
});

test('a change can be written by hand, and the rules of its entity apply', async () => {
  const application = await createApplication(openHistory(), orders, tables, {
    entities: { note: { mask: ['secret'] } },
  });
  const { pool, history } = application;
  await pool.query(`select annals.record('note', '7', null, '{"a": 1, "secret": "canary"}', name => 'Seven')`);
  expect((await pool.query('select o::text as row from annals.outbox o')).rows[0].row).not.toContain('canary');
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  expect((await entriesOf(history))[0]).toMatchObject({
    entity: 'note',
    entityId: '7',
    name: 'Seven',
    paths: { a: { after: 1 }, secret: { after: '********' } },
  });
});

test('two relays and four writers: each document in the order of its changes, and nothing twice', async () => {
  const application = await createApplication(openHistory(), 'create table items (id int primary key, version int)', {
    'public.items': { entity: 'item' },
  });
  const { pool, history } = application;
  startRelay(application);
  startRelay(application);
  await pool.query('insert into items select n, 0 from generate_series(1, 8) n');
  await Promise.all(
    [0, 1, 2, 3].map(async (writer) => {
      for (let round = 0; round < 40; round++) {
        await pool.query('update items set version = version + 1 where id = $1', [1 + ((writer + round) % 8)]);
      }
    }),
  );
  await eventually(() => entriesOf(history)).toHaveLength(168);
  const entries = await entriesOf(history);
  for (let id = 1; id <= 8; id++) {
    const versions = entries.filter(({ entityId }) => entityId === String(id)).map(({ paths }) => paths.version?.after);
    expect(versions).toEqual(Array.from({ length: 21 }, (_, version) => version));
  }
});

const kills = trials(1);

test('kill -9 of the relay: every committed change is an entry exactly once', async () => {
  const application = await createApplication(
    openHistory(),
    `create table items (id int primary key, version int);
     create table happened (id int, version int);
     create function happen() returns trigger language plpgsql as
       $$ begin insert into happened values (new.id, new.version); return new; end $$;
     create trigger happen after insert or update on items for each row execute function happen()`,
    { 'public.items': { entity: 'item' } },
  );
  const { pool, history, mapping, url } = application;
  const folder = temporaryFolder();
  const file = join(folder, 'mapping.json');
  await writeFile(file, JSON.stringify(mapping));
  const key = Buffer.alloc(32, 7).toString('base64');
  const environment = { DATABASE_URL: history.url, ANNALS_SECRET_KEY: key, ANNALS_SOURCE_URL: url };
  const start = () => startAnnals(['relay', '--mapping', file], environment);
  let isWriting = true;
  await pool.query('insert into items select n, 0 from generate_series(1, 8) n');
  const writers = [0, 1, 2, 3].map(async (writer) => {
    for (let round = 0; isWriting; round++) {
      await pool.query('update items set version = version + 1 where id = $1', [1 + ((writer + round) % 8)]);
      // The relay shall not have to catch up with a busy machine's writers for long.
      await sleep(25);
    }
  });
  for (let kill = 0; kill < kills; kill++) {
    const running = start();
    await running.firstLine;
    const before = await countOfEntries(history);
    await eventually(() => countOfEntries(history)).toBeGreaterThan(before);
    running.process.kill('SIGKILL');
    await running.ended;
  }
  isWriting = false;
  await Promise.all(writers);
  // Nobody kills the last one.
  const last = startHere(['relay', '--mapping', file], environment);
  const { rows: happened } = await pool.query('select id::text, version from happened order by id, version');
  await eventually(() => countOfEntries(history)).toBe(happened.length);
  const recorded = (await entriesOf(history)).map(({ entityId, paths }) => ({
    id: entityId,
    version: paths.version?.after,
  }));
  expect(recorded.toSorted((one, other) => one.id.localeCompare(other.id))).toEqual(happened);
  last.stop();
  expect((await last.ended).code).toBe(0);
});

test('a batch of the relay is a trace with its steps, a look that finds nothing is none, and the port tells what waits', async () => {
  const { spans, tracer } = await startTracing();
  const application = await createApplication(openHistory(), orders, tables);
  const metrics = new Metrics();
  measureRelay(metrics, readSource(application.url));
  const source = new Metrics();
  measureRelay(source, readSource(application.url.replace(/:\d+\//, ':9/')));
  await application.pool.query("insert into orders values (1, 'a title that no span may have', 1)");
  const text = await textOf([await metrics.read()]);
  expect(text).toMatch(/^annals_relay_source_up 1$/m);
  expect(text).toMatch(/^annals_relay_pending_changes 1$/m);
  expect(text).toMatch(/^annals_relay_oldest_seconds [\d.e-]+$/m);
  const away = await textOf([await source.read()]);
  expect(away).toMatch(/^annals_relay_source_up 0$/m);
  expect(away).not.toContain('annals_relay_pending_changes ');

  const { stop } = startRelay(application, tracer);
  await eventually(() => entriesOf(application.history)).toHaveLength(1);
  await stop();
  await tracer.close();
  expect(treesOf(spans)).toEqual([
    { name: 'relay', changes: 1, hasFailed: false, steps: ['delete', 'map', 'read', 'record'] },
  ]);
  expect(JSON.stringify(spans)).not.toContain('no span may');
});
