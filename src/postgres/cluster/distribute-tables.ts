import type pg from 'pg';
import { messageOf, OperatorError } from '../../core/errors.ts';

export interface DistributeTablesOptions {
  /** The number of shards, each with several tenants. Only the first call sets it. */
  shards?: number;
}

const defaultShards = 32;

/** Makes a transaction use one connection to each worker, so that later statements see the effects of earlier ones. */
export async function beginSequential(client: pg.ClientBase): Promise<void> {
  await client.query("set local citus.multi_shard_modify_mode = 'sequential'");
}

/**
 * Distributes the tables with a column `tenant` that are not distributed yet, with their rows. A tenant's rows are on
 * one worker. Returns the names of these tables. The caller is in a transaction, after beginSequential.
 */
export async function distributeTables(
  client: pg.ClientBase,
  { shards = defaultShards }: DistributeTablesOptions = {},
): Promise<string[]> {
  const distributed: string[] = [];
  for (;;) {
    const tables = await readyTables(client);
    for (const name of tables) await distributeTable(client, name, shards);
    distributed.push(...tables);
    if (tables.length === 0) return distributed;
  }
}

/** The tables to distribute whose rows refer to none of the others. */
async function readyTables(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `with left_over as (
       select c.oid, c.relname as name
         from pg_class c
         join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
         where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = current_schema()::regnamespace
           and not exists (select from pg_catalog.pg_dist_partition d where d.logicalrelid = c.oid)
     ), first as (
       select exists (select from left_over where name = 'tenant') as tenant
     )
     select l.name from left_over l cross join first
       where (not first.tenant or l.name = 'tenant')
         and not exists (select from pg_constraint f join left_over parent on parent.oid = f.confrelid
                           where f.contype = 'f' and f.conrelid = l.oid and f.confrelid <> l.oid)
       order by l.name`,
  );
  return rows.map(({ name }) => name);
}

async function distributeTable(client: pg.ClientBase, name: string, shards: number): Promise<void> {
  try {
    // Logical replication does not copy unlogged tables, which would block moves of their shards.
    const { rows } = await client.query<{ statement: string }>(
      `select format('alter table %s set logged', c.oid::regclass) as statement from pg_class c
         where c.oid = quote_ident($1)::regclass and c.relpersistence = 'u'`,
      [name],
    );
    for (const { statement } of rows) await client.query(statement);
    // All other tables are colocated with the first one.
    await (name === 'tenant'
      ? client.query("select create_distributed_table('tenant', 'tenant', shard_count => $1)", [shards])
      : client.query("select create_distributed_table(quote_ident($1), 'tenant', colocate_with => 'tenant')", [name]));
  } catch (cause) {
    throw new OperatorError(`The table ${name} cannot be distributed: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Raises the common sequence of all workers (docs/decisions/cluster.md) above all existing numbers. Citus' own
 * sequences differ from worker to worker.
 */
export async function raiseNumbers(client: pg.ClientBase): Promise<void> {
  await client.query('create sequence if not exists change_number as bigint minvalue 16');
  const numbered: [table: string, column: string][] = [
    ['change_entry', 'sequence'],
    ['change_kind', 'kind'],
    ['change_actor', 'actor'],
    ['change_recorder', 'recorder'],
    ['change_delta', 'delta'],
  ];
  for (const [table, column] of numbered) {
    const { rows } = await client.query<{ last: number | null }>(`select max(${column}) as last from ${table}`);
    await client.query(
      `select setval('change_number', greatest($1::bigint, last_value)) from change_number where $1::bigint >= last_value`,
      [rows[0]?.last ?? 0],
    );
  }
}
