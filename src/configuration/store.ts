import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { Statements } from '../db/statements.ts';
import type { Tables } from '../db/tables.ts';
import type { ConfigurationItem } from './item.ts';
import './tables.ts';

/** All items of the tenant, or those of the keys that are there; by key. */
export async function readItems(
  db: Database,
  tenant: string,
  keys: readonly string[] | undefined,
): Promise<ConfigurationItem[]> {
  const all = db.selectFrom('configuration').selectAll().where('tenant', '=', tenant).orderBy('key');
  const wanted = keys === undefined ? all : all.where(({ eb, fn, val }) => eb('key', '=', fn.any(val([...keys]))));
  return (await wanted.execute()).map(itemOf);
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

/** The sealed value alone, by a prepared statement, because every completion needs it. */
export async function readSealed(pool: Statements, tenant: string, key: string): Promise<Uint8Array | undefined> {
  const { rows } = await pool.query<{ sealed: Uint8Array | null }>({
    name: 'configuration_sealed',
    text: 'select sealed from configuration where tenant = $1 and key = $2',
    values: [tenant, key],
  });
  return rows[0]?.sealed ?? undefined;
}

/** Inserts the items whose keys do not exist, and returns those keys. */
export async function insertItems(
  db: Database,
  tenant: string,
  items: readonly ConfigurationItem[],
): Promise<string[]> {
  // In the order of keys: two writers of the same keys then wait for each other instead of a deadlock.
  const rows = [...items].sort((one, other) => (one.key < other.key ? -1 : 1)).map((item) => rowOf(tenant, item));
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

/** Deletes the item and answers what it was; undefined where it is not there. */
export async function deleteItem(db: Database, tenant: string, key: string): Promise<ConfigurationItem | undefined> {
  const row = await db
    .deleteFrom('configuration')
    .where('tenant', '=', tenant)
    .where('key', '=', key)
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
