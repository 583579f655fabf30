import type pg from 'pg';
import { type CatalogueTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import { columnNews, type KnownTable, knownTable, partitionNews } from '../../postgres/source/table-news.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { PostgresTypes } from '../../recording/mapping/postgres-types.ts';
import type { SourceLog } from '../source-log.ts';
import { deleteNotes } from './outbox-rows.ts';

/** Milliseconds between checks. */
const defaultInterval = 10_000;

const runAgain = 'Run the SQL of annals outbox again';

/**
 * Watches the mapped tables and their triggers while the relay runs (docs/decisions/capture.md). Reports each state
 * once, and again when it recurs.
 */
export class TriggerWatch {
  readonly #mapping: Mapping;
  readonly #log: SourceLog;
  #tables: ReadonlyMap<string, RelayedTable> = new Map();
  #previous = new Map<string, KnownTable>();
  #states = new Set<string>();
  readonly #reported = new Set<string>();
  #nextLook = 0;
  readonly #interval: number;

  constructor(mapping: Mapping, log: SourceLog, interval = defaultInterval) {
    this.#mapping = mapping;
    this.#log = log;
    this.#interval = interval;
  }

  get isDue(): boolean {
    return performance.now() >= this.#nextLook;
  }

  /** The mapped tables at the last check. */
  get tables(): ReadonlyMap<string, RelayedTable> {
    return this.#tables;
  }

  async look(client: pg.Client): Promise<void> {
    this.#nextLook = performance.now() + this.#interval;
    const names = [...this.#mapping.tables.keys()];
    const catalogue = await readCatalogue(client, names);
    const types = new PostgresTypes(client);
    await types.load([...catalogue.values()].flatMap(({ columns }) => columns.map(({ type }) => type)));
    this.#tables = new Map([...catalogue].map(([name, table]) => [name, relayedTable(table, types)]));
    const states = await this.#triggerStates(client, names);
    for (const state of states) if (!this.#states.has(state)) this.#log.warn({}, state);
    this.#states = new Set(states);
    // Also of an earlier mapping.
    await deleteNotes(client);
    for (const [name, table] of catalogue) {
      const [before, now] = [this.#previous.get(name), knownTable(table)];
      this.#previous.set(name, now);
      if (before === undefined) continue;
      const news = [
        columnNews(name, before.columns, now.columns),
        ...(await partitionNews(client, name, before.partitions, now.partitions)),
      ];
      for (const message of news) if (message !== undefined) this.#log.warn({}, message);
    }
  }

  /** Warns of a row with columns unknown to its trigger. */
  warnOfLaterColumns(table: string, columns: readonly string[]): void {
    const message = `${table} has columns that came after the SQL of annals outbox ran: ${columns.join(', ')}. Their values are masked. ${runAgain}`;
    if (this.#reported.has(message)) return;
    this.#reported.add(message);
    this.#log.warn({}, message);
  }

  async #triggerStates(client: pg.Client, names: readonly string[]): Promise<string[]> {
    const { rows: functions } = await client.query<{ name: string }>(functionsStatement);
    const has = (name: string) => functions.some((item) => item.name === name);
    const states: string[] = [];
    if (!has('change_of'))
      states.push(
        `the triggers are of an older version, which can make statements of the application fail. ${runAgain}`,
      );
    else if (!has('count_changes'))
      states.push(`the triggers are of an older version, which ignores annals.who and groups no changes. ${runAgain}`);
    const { rows: without } = await client.query<{ name: string }>(withoutTriggerStatement, [names]);
    for (const { name } of without) {
      states.push(
        `the table ${name} has no trigger, so its changes are not recorded. It may have been recreated, or mapped later. ${runAgain}`,
      );
    }
    // Statement triggers on tables that now need row triggers (docs/decisions/outbox.md).
    const { rows: late } = has('writes_by_row')
      ? await client.query<{ name: string }>(lateStatement, [names])
      : { rows: [] };
    for (const { name } of late) states.push(`the table ${name} now needs a trigger for each row. ${runAgain}`);
    return states;
  }
}

const functionsStatement = `
select proname as name from pg_catalog.pg_proc
 where proname in ('change_of', 'count_changes', 'writes_by_row') and pronamespace = pg_catalog.to_regnamespace('annals')`;

const withoutTriggerStatement = `
select t.name from pg_catalog.unnest($1::text[]) as t (name)
 where not exists (
   select from pg_catalog.pg_trigger g
     join pg_catalog.pg_class c on c.oid = g.tgrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname || '.' || c.relname = t.name and g.tgname in ('annals_row', 'annals_insert') and g.tgenabled <> 'D')`;

const lateStatement = `
select n.nspname || '.' || c.relname as name
  from pg_catalog.pg_trigger g
  join pg_catalog.pg_class c on c.oid = g.tgrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where g.tgname = 'annals_insert' and n.nspname || '.' || c.relname = any ($1::text[]) and annals.writes_by_row(c.oid)`;

/** A mapped table of the source. */
interface RelayedTable {
  readonly primaryKey: readonly string[];
  /** Converts JSON of the trigger to that of capture. */
  value(column: string, json: string): string;
}

/** PostgreSQL's own JSON of a few types differs from what capture records. */
function relayedTable({ columns, primaryKey }: CatalogueTable, types: PostgresTypes): RelayedTable {
  const typeOf = new Map(columns.map(({ name, type }) => [name, type]));
  return {
    primaryKey,
    value(column, json) {
      const type = typeOf.get(column);
      return type === undefined || json === 'null' ? json : types.ofJson(type, json);
    },
  };
}
