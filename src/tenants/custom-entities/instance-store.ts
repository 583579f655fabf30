import { CompiledQuery, sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import './tables.ts';
import { maxIndexedValues } from './value-index.ts';

export interface StoredDocument {
  readonly version: number;
  /** JSON text. */
  readonly document: string;
}

export interface InstanceRow extends StoredDocument {
  readonly type: string;
  readonly id: string;
  /** The text for the jsonb column. */
  readonly fields: string;
  /** Number of JSON values of the document. */
  readonly values: number;
}

/** As text, because the query builder takes longer to build such a statement than the driver takes to send it. */
const instanceById = 'select version, document from custom_instance where tenant = $1 and type = $2 and id = $3';

/** With `lock` nobody else changes the instance until the transaction ends. */
export async function findInstance(
  db: Connection,
  tenant: string,
  { type, id }: { type: string; id: string },
  options: { lock?: boolean } = {},
): Promise<StoredDocument | undefined> {
  const text = options.lock === true ? `${instanceById} for update` : instanceById;
  const { rows } = await db.executeQuery<StoredDocument>(CompiledQuery.raw(text, [tenant, type, id]));
  return rows[0];
}

/** Returns false if the id exists already. Fails on its foreign key if the type does not exist. */
export async function insertInstance(
  transaction: DatabaseTransaction,
  tenant: string,
  { type, id, version, document, fields, values }: InstanceRow,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto('custom_instance')
    .values({ tenant, type, id, version, document, fields: sql`${fields}::jsonb`, wide: widthOf(values) })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

export async function updateInstance(
  transaction: DatabaseTransaction,
  tenant: string,
  { type, id, version, document, fields, values }: InstanceRow,
): Promise<void> {
  await transaction
    .updateTable('custom_instance')
    .set({ version, document, fields: sql`${fields}::jsonb`, wide: widthOf(values) })
    .where('tenant', '=', tenant)
    .where('type', '=', type)
    .where('id', '=', id)
    .execute();
}

export async function deleteInstance(
  transaction: DatabaseTransaction,
  tenant: string,
  { type, id }: { type: string; id: string },
): Promise<void> {
  await transaction
    .deleteFrom('custom_instance')
    .where('tenant', '=', tenant)
    .where('type', '=', type)
    .where('id', '=', id)
    .execute();
}

function widthOf(values: number): number {
  return values > maxIndexedValues ? 1 : 0;
}
