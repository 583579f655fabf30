import { setTimeout as sleep } from 'node:timers/promises';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/sources/outbox/outbox-sql.ts';
import { ask } from '../capture/world.ts';
import { Counts } from '../recording/counts.ts';

/** The tables of the application: one is under capture, the other one has triggers. */
export const tables = ['captured', 'triggered'] as const;

/** The mapping of one of the tables. */
export function mappingOf(table: string, tenant: string): string {
  return JSON.stringify({ version: 1, tenant: { value: tenant }, tables: { [`public.${table}`]: { entity: table } } });
}

/** Two tables, and what happened to them by their own triggers. `noise` is KiB that other work writes into the log each second. */
export async function makeShop(shop: string, tenant: string, noise: number): Promise<void> {
  for (const table of tables) {
    await ask(
      shop,
      `create table ${table} (id text primary key, version int not null);
       alter table ${table} replica identity full;
       create table happened_${table} (id text, version int);
       create function happen_${table}() returns trigger language plpgsql as
         $$ begin insert into happened_${table} values (new.id, new.version); return new; end $$;
       create trigger happen after insert or update on ${table} for each row execute function happen_${table}()`,
    );
  }
  await ask(
    shop,
    `create table noise (number int, line char(1000)) with (fillfactor = 45);
     insert into noise select n, 'noise' from generate_series(1, ${noise}) n`,
  );
  await ask(shop, outboxSql(readMapping(mappingOf('triggered', tenant))));
}

/** What the application does, and how long its commits took, by phase. */
export class ShopWriters {
  readonly commits = new Counts();
  readonly slowest = new Map<string, number>();

  /** Writes both tables, and the noise, until the run is over. */
  async run(
    shop: string,
    { phase, isOver, pause }: { phase(): string; isOver(): boolean; pause(milliseconds: number): Promise<void> },
    noise: number,
  ): Promise<void> {
    const pool = createPool(shop, { maximum: 3 });
    const writers = tables.map(async (table) => {
      for (let turn = 0; !isOver(); turn++) {
        const began = performance.now();
        await pool.query(
          `insert into ${table} values ($1, 1) on conflict (id) do update set version = ${table}.version + 1`,
          [`${table}-${turn % 500}`],
        );
        this.commits.add(`${phase()}: ${table}`);
        this.slowest.set(phase(), Math.max(this.slowest.get(phase()) ?? 0, performance.now() - began));
        await pause(10);
      }
    });
    for (; !isOver() && noise > 0; await sleep(1_000)) await pool.query('update noise set number = number + 1');
    await Promise.all(writers);
    await pool.end();
  }
}

/** How much the source keeps while nothing is recorded. */
export async function retainedBySource(shop: string): Promise<string> {
  const [row] = await ask(
    shop,
    `select pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)) as log,
            (select count(*)::int from annals.outbox) as rows
       from pg_replication_slots`,
  );
  return `${row?.log}, ${row?.rows} rows`;
}
