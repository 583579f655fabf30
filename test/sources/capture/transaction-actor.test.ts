import { describe, expect, test } from 'vitest';
import type { TestDatabase } from '../../support/server/database.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { createApplication, startRelay } from '../outbox/relayed.ts';
import { startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

const definition = `create table flags (id int primary key, enabled bool, by text); alter table flags replica identity full;
  create table events (id int primary key, who text); alter table events replica identity full`;
const tables = {
  'public.flags': { entity: 'flag', actor: 'by' },
  'public.events': { entity: 'event', transactionActor: 'who' },
};

/** Each transaction, and the actors of its changes of flags in their order. */
const transactions: [string, string[]][] = [
  [
    `insert into flags values (1, true); insert into events values (1, 'Ada'); update flags set enabled = false where id = 1`,
    ['Ada', 'Ada'],
  ],
  [`insert into flags values (2, true)`, ['unknown']],
  // What the row says itself comes before, what the application says of its transaction too. The first event counts.
  [
    `insert into events values (2, 'Ben'), (3, 'Cleo'); insert into flags values (3, true, 'Dora'), (4, true, null)`,
    ['Dora', 'Ben'],
  ],
  [
    `insert into flags values (5, true); insert into events values (4, null); insert into events values (5, ''), (6, 'Emil')`,
    ['Emil'],
  ],
  [
    `update events set who = 'Frida' where id = 1; delete from events where id = 2; insert into flags values (6, true)`,
    ['unknown'],
  ],
  [
    `savepoint one; insert into events values (7, 'Gone'); rollback to one; insert into flags values (7, true)`,
    ['unknown'],
  ],
];

async function actorsOf(history: TestDatabase): Promise<string[]> {
  const entries = await entriesOf(history);
  return entries.filter(({ entity }) => entity === 'flag').map(({ actor }) => actor);
}

const expected = transactions.flatMap(([, actors]) => actors);

describe('a new row of another table says who made the changes of its transaction, where nothing else does', () => {
  test('by capture, also in a large transaction and a truncate', async () => {
    const source = databases.openSource();
    await source.pool.query(definition);
    const history = databases.openHistory();
    await startCapture({ source, history, tables }).running;
    for (const [statements] of transactions) await source.pool.query(`begin; ${statements}; commit`);
    await source.pool.query(
      `begin; select pg_logical_emit_message(true, 'annals.actor', '{"actor": "Hanna"}'); insert into events values (8, 'Ada');
       insert into flags values (8, true); commit`,
    );
    await eventually(() => actorsOf(history)).toEqual([...expected, 'Hanna']);
    const events = (await entriesOf(history)).filter(({ entity }) => entity === 'event');
    expect(events[0]?.actor).toBe('Ada');
    await source.pool.query(`begin; truncate flags; insert into events values (9, 'Ida'); commit`);
    await source.pool.query(
      `begin; insert into flags select n, true from generate_series(101, 2100) n; insert into events values (10, 'Jon'); commit`,
    );
    const lastEvent = async () => await history.pool.query(`select from change_entry where entity_id = '10'`);
    await eventually(async () => (await lastEvent()).rowCount).toBe(1);
    const actors = Map.groupBy(await actorsOf(history), (actor) => actor);
    expect([actors.get('Ida')?.length, actors.get('Jon')?.length]).toEqual([8, 2000]);
  });

  test('by triggers and the relay', async () => {
    const application = await createApplication(databases.openHistory(), definition, tables);
    const { pool, history } = application;
    for (const [statements] of transactions) await pool.query(`begin; ${statements}; commit`);
    await pool.query(
      `begin; select set_config('annals.actor', 'Hanna', true); insert into events values (8, 'Ada'); insert into flags values (8, true); commit`,
    );
    await pool.query(
      `begin; select annals.record('note', '1', null, '{}'); insert into events values (9, 'Ida'); commit`,
    );
    startRelay(application);
    const byFlag = async () =>
      (await entriesOf(history))
        .filter(({ entity }) => entity === 'flag')
        .map(({ entityId, actor }) => `${entityId} ${actor}`)
        .sort();
    await eventually(byFlag).toEqual([
      '1 Ada',
      '1 Ada',
      '2 unknown',
      '3 Dora',
      '4 Ben',
      '5 Emil',
      '6 unknown',
      '7 unknown',
      '8 Hanna',
    ]);
    await eventually(async () =>
      (await entriesOf(history)).filter(({ entity }) => entity === 'note').map(({ actor }) => actor),
    ).toEqual(['Ida']);
  });

  test('by triggers of a partitioned table, until the mapping says so no more', async () => {
    const application = await createApplication(
      databases.openHistory(),
      `${definition.replace('events (id int primary key, who text)', 'events (id int primary key, who text) partition by range (id)')};
       create table events_1 partition of events for values from (0) to (100)`,
      tables,
    );
    const { pool, history } = application;
    await pool.query(`begin; insert into flags values (1, true); insert into events values (1, 'Ada'); commit`);
    Object.assign(application.mapping, { tables: { ...tables, 'public.events': { entity: 'event' } } });
    await application.install();
    await pool.query(`begin; insert into flags values (2, true); insert into events values (2, 'Ben'); commit`);
    startRelay(application);
    await eventually(async () => (await actorsOf(history)).sort()).toEqual(['Ada', 'unknown']);
  });

  test('capture stops where the column is renamed', async () => {
    const source = databases.openSource();
    await source.pool.query(definition);
    const history = databases.openHistory();
    const running = startCapture({ source, history, tables });
    await running.running;
    await source.pool.query(`alter table events rename who to by_whom; insert into events values (1, 'Ada')`);
    await expect(running.ended).rejects.toThrow('public.events has no column who (transactionActor) any more');
  });
});
