import { type Selectable, sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import type { Tables } from '../../postgres/tables.ts';
import type { ConfigurationItem } from './item.ts';

/** The existing items of these keys. */
export async function readItems(db: Database, tenant: string, keys: readonly string[]): Promise<ConfigurationItem[]> {
  const rows = await db
    .selectFrom('configuration')
    .selectAll()
    .where('tenant', '=', tenant)
    .where(({ eb, fn, val }) => eb('key', '=', fn.any(val([...keys]))))
    .execute();
  return rows.map(itemOf);
}

/** An item of a list. `item` is undefined where its text is read later. */
export interface ListedItem {
  readonly key: string;
  readonly bytes: number;
  readonly item: ConfigurationItem | undefined;
}

/** All items, or the existing ones of these keys, by key. The first `maxBytes` bytes include their texts. */
export async function listItems(
  db: Database,
  tenant: string,
  keys: readonly string[] | undefined,
  maxBytes: number,
): Promise<ListedItem[]> {
  const selection = keys === undefined ? sql`true` : sql`key = any(${keys}::text[])`;
  const { rows } = await sql<Row & { bytes: number; shown: boolean }>`
    with found as (
      select *, sum(bytes) over (order by key) <= ${maxBytes}::bigint as shown
        from (select c.*, coalesce(octet_length(value), 0) + coalesce(octet_length(description), 0)
            + octet_length(key) + 200 as bytes
              from configuration c where tenant = ${tenant} and ${selection}) measured
    )
    select tenant, key, version, bytes, shown, sealed, case when shown then value end as value,
        case when shown then description end as description
      from found order by key`.execute(db);
  return rows.map((row) => ({ key: row.key, bytes: row.bytes, item: row.shown ? itemOf(row) : undefined }));
}

export async function readItem(
  db: Database,
  tenant: string,
  key: string,
  options: { lock?: boolean } = {},
): Promise<ConfigurationItem | undefined> {
  const query = db.selectFrom('configuration').selectAll().where('tenant', '=', tenant).where('key', '=', key);
  const row = await (options.lock === true ? query.forUpdate() : query).executeTakeFirst();
  return row && itemOf(row);
}

/** A sealed value, and whether its tenant had budgets at that moment. */
export interface SealedValue {
  readonly sealed: Uint8Array;
  readonly hasBudgets: boolean;
}

/**
 * The sealed values of these keys and, because a call with such a key needs it next, whether there are budgets. A
 * prepared statement, because every completion runs it.
 */
export async function readSealedValues(
  pool: Statements,
  tenant: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, SealedValue>> {
  const { rows } = await pool.query<SealedValue & { key: string }>({
    name: 'configuration_sealed',
    text: `select key, sealed, exists (select from budget where tenant = $1) as "hasBudgets"
             from configuration where tenant = $1 and key = any($2::text[]) and sealed is not null`,
    values: [tenant, keys],
  });
  return new Map(rows.map(({ key, ...value }) => [key, value]));
}

/** Inserts the items whose keys do not exist, and returns those keys. */
export async function insertItems(
  db: Database,
  tenant: string,
  items: readonly ConfigurationItem[],
): Promise<string[]> {
  // Ordered by key, so that concurrent writers do not deadlock.
  const rows = [...items].sort((a, b) => (a.key < b.key ? -1 : 1)).map((item) => rowOf(tenant, item));
  const inserted = await db
    .insertInto('configuration')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .returning('key')
    .execute();
  return inserted.map(({ key }) => key);
}

export async function updateItem(db: Database, tenant: string, item: ConfigurationItem): Promise<void> {
  const { tenant: _tenant, key, ...columns } = rowOf(tenant, item);
  await db.updateTable('configuration').set(columns).where('tenant', '=', tenant).where('key', '=', key).execute();
}

/** Deletes the item and returns it; undefined where it does not exist. */
export async function deleteItem(db: Database, tenant: string, key: string): Promise<ConfigurationItem | undefined> {
  const row = await db
    .deleteFrom('configuration')
    .where(({ and }) => and({ tenant, key }))
    .returningAll()
    .executeTakeFirst();
  return row && itemOf(row);
}

type Row = Selectable<Tables['configuration']>;

function itemOf(row: Row): ConfigurationItem {
  return {
    key: row.key,
    value: row.sealed === null ? { secured: false, json: row.value ?? 'null' } : { secured: true, sealed: row.sealed },
    version: row.version,
    description: row.description ?? undefined,
  };
}

function rowOf(tenant: string, { key, value, version, description }: ConfigurationItem): Row {
  return {
    tenant,
    key,
    value: value.secured ? null : value.json,
    sealed: value.secured ? value.sealed : null,
    version,
    description: description ?? null,
  };
}

interface ConfigurationTable {
  tenant: string;
  key: string;
  /** JSON text; null where the value is secured. */
  value: string | null;
  /** null where the value is not secured. */
  sealed: Uint8Array | null;
  version: number;
  description: string | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    configuration: ConfigurationTable;
  }
}
