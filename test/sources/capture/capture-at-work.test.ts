import { expect, onTestFinished, test } from 'vitest';
import { measureCapture } from '../../../src/context/installation-figures.ts';
import { Metrics, textOf } from '../../../src/metrics/metrics.ts';
import { startTracing, treesOf } from '../../support/server/collector.ts';
import { startDatabaseProxy } from '../../support/server/database-proxy.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { captureOrders, startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

test('a capture that was stopped continues where it was, and records nothing twice', async () => {
  const { source, history, setup, running } = await captureOrders(databases);
  await source.pool.query(`insert into orders values (1, 'one', 1)`);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  await running.stop();
  await source.pool.query(`insert into orders values (2, 'two', 2)`);
  await startCapture(setup).running;
  await source.pool.query(`insert into orders values (3, 'three', 3)`);
  await eventually(() => entriesOf(history)).toHaveLength(3);
  expect((await entriesOf(history)).map(({ entityId }) => entityId)).toEqual(['1', '2', '3']);
});

test('a second capture waits for the end of the first, and then records', async () => {
  const { source, history, setup, running } = await captureOrders(databases);
  const second = startCapture(setup);
  await eventually(() => second.messages).toContain('another capture reads the slot; this one waits for its end');
  await source.pool.query(`insert into orders values (1, 'one', 1)`);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  await running.stop();
  await second.running;
  await source.pool.query(`insert into orders values (2, 'two', 2)`);
  await eventually(() => entriesOf(history)).toHaveLength(2);
});

test('a capture ends that finds a position which it did not write', async () => {
  const { source, history, running } = await captureOrders(databases);
  await source.pool.query(`insert into orders values (1, 'one', 1)`);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  await history.pool.query('update capture_position set changes = changes + 1');
  await source.pool.query(`insert into orders values (2, 'two', 2)`);
  await expect(running.ended).rejects.toThrow('another capture of this installation records');
  expect(await entriesOf(history)).toHaveLength(1);
});

test('capture continues after either database cut its connections', async () => {
  const { source, history } = await captureOrders(databases);
  const cut = `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database() and application_name <> 'annals test'`;
  for (let id = 1; id <= 4; id++) {
    await source.pool.query(`insert into orders values ($1, 'x', 1)`, [id]);
    await (id % 2 === 0 ? source : history).pool.query(cut);
  }
  await eventually(() => entriesOf(history)).toHaveLength(4);
});

test('while Annals cannot record, capture still watches how much of its log the source keeps', async () => {
  const source = databases.openSource();
  await source.pool.query('create table orders (id int primary key)');
  const history = databases.openHistory();
  const capture = startCapture({ source, history, tables: { 'public.orders': { entity: 'order' } }, heartbeat: 50 });
  const { running, figures } = capture;
  await running;
  await source.pool.query('insert into orders values (1)');
  await eventually(() => entriesOf(history)).toHaveLength(1);
  await history.pool.query('alter table capture_position rename to hidden_position');
  await eventually(() => Promise.resolve(capture.messages.some((text) => text.includes('tries again')))).toBe(true);
  const { slotBytes } = figures;
  await source.pool.query(
    `begin; insert into orders values (2); select pg_logical_emit_message(true, 'large', repeat('x', 200000)); commit`,
  );
  await eventually(() => Promise.resolve(figures.slotBytes > slotBytes + 100_000)).toBe(true);
  const { lagMilliseconds } = figures;
  await eventually(() => Promise.resolve(figures.lagMilliseconds > lagMilliseconds)).toBe(true);
  await history.pool.query('alter table hidden_position rename to capture_position');
  await eventually(() => entriesOf(history)).toHaveLength(2);
});

test('capture reports once that it cannot check how much log an unreachable source keeps', async () => {
  const source = databases.openSource();
  await source.pool.query('create table orders (id int primary key)');
  const history = databases.openHistory();
  const proxy = await startDatabaseProxy(source.url);
  onTestFinished(() => proxy.close());
  const tables = { 'public.orders': { entity: 'order' } };
  const capture = startCapture({ source, history, tables, url: proxy.url, heartbeat: 50 });
  await capture.running;
  const messagesWith = (text: string) => capture.messages.filter((message) => message.includes(text)).length;
  proxy.failAfter(0, 'away');
  await eventually(async () => messagesWith('tries again')).toBeGreaterThan(2);
  expect(messagesWith('cannot see how much of its log the source keeps')).toBe(1);
});

test('a capture that waits for its stream to begin can be stopped', async () => {
  const source = databases.openSource();
  await source.pool.query('create table orders (id int primary key)');
  const history = databases.openHistory();
  const proxy = await startDatabaseProxy(source.url);
  onTestFinished(() => proxy.close());
  proxy.swallow('START_REPLICATION');
  const tables = { 'public.orders': { entity: 'order' } };
  const capture = startCapture({ source, history, tables, url: proxy.url });
  await eventually(async () => proxy.swallowed).toBe(1);
  await capture.stop();
  await expect(capture.running).rejects.toThrow('capture ended');
});

test('a portion of capture is a trace with its steps, and the port tells how far capture is', async () => {
  const { spans, tracer } = await startTracing();
  const source = databases.openSource();
  await source.pool.query('create table orders (id int primary key, title text); create table others (id int)');
  const history = databases.openHistory();
  const capture = startCapture({
    source,
    history,
    tables: { 'public.orders': { entity: 'order' } },
    heartbeat: 50,
    tracer,
  });
  await capture.running;
  const metrics = new Metrics();
  onTestFinished(measureCapture(metrics, capture.figures, history.url));
  // What is not captured moves the position and has no span.
  await source.pool.query('insert into others values (1)');
  await source.pool.query("insert into orders values (1, 'a title that no span may have')");
  await eventually(() => entriesOf(history)).toHaveLength(1);
  await eventually(() => capture.figures.slotBytes).toBeGreaterThan(0);
  const text = await textOf([await metrics.read()]);
  const { slotBytes } = capture.figures;
  expect(Number(/^annals_capture_slot_bytes (\S+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
  expect(slotBytes).toBeGreaterThan(0);
  expect(text).toMatch(/^annals_capture_lag_seconds \S+$/m);
  expect(text).toMatch(/^annals_capture_lag_bytes \d+$/m);
  expect(Number(/^annals_capture_position_age_seconds (\S+)$/m.exec(text)?.[1])).toBeGreaterThanOrEqual(0);
  // This source keeps its log without limit.
  expect(text).not.toContain('annals_capture_slot_safe_bytes ');
  await capture.stop();
  await tracer.close();
  expect(treesOf(spans)).toEqual([
    { name: 'capture', changes: 1, hasFailed: false, steps: ['read and map', 'record'] },
  ]);
  expect(JSON.stringify(spans)).not.toContain('no span may');
});

test('heartbeats move the slot of a database whose captured tables do not change', async () => {
  const source = databases.openSource();
  await source.pool.query('create table orders (id int primary key); create table other (id int)');
  const history = databases.openHistory();
  const running = startCapture({ source, history, tables: { 'public.orders': { entity: 'order' } }, heartbeat: 50 });
  await running.running;
  await source.pool.query('insert into other select generate_series(1, 1000)');
  const { rows } = await source.pool.query('select pg_current_wal_lsn()::text as lsn');
  await eventually(async () => {
    const { rows: reached } = await source.pool.query(
      'select confirmed_flush_lsn > $2::pg_lsn as reached from pg_replication_slots where slot_name = $1',
      [source.slot, rows[0]?.lsn],
    );
    return reached[0]?.reached;
  }).toBe(true);
  expect(await entriesOf(history)).toEqual([]);
});
