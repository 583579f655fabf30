import { sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import './tables.ts';

export interface TypeRow {
  readonly id: string;
  readonly version: number;
  /** JSON text. */
  readonly document: string;
  readonly jsonSchema: string | null;
}

/** With `lock` nobody else changes the type until the transaction ends. Others can still write its instances. */
export async function findType(
  db: Connection,
  tenant: string,
  id: string,
  options: { lock?: boolean } = {},
): Promise<TypeRow | undefined> {
  const query = db
    .selectFrom('custom_entity')
    .select(['id', 'version', 'document', 'json_schema as jsonSchema'])
    .where('tenant', '=', tenant)
    .where('id', '=', id);
  return await (options.lock === true ? query.forNoKeyUpdate() : query).executeTakeFirst();
}

/** Returns false if the id exists already. */
export async function insertType(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, version, document, jsonSchema, fields }: TypeRow & { fields: string },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto('custom_entity')
    .values({ tenant, id, version, document, json_schema: jsonSchema, fields: sql`${fields}::jsonb` })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

export async function updateType(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, version, document, jsonSchema, fields }: TypeRow & { fields: string },
): Promise<void> {
  await transaction
    .updateTable('custom_entity')
    .set({ version, document, json_schema: jsonSchema, fields: sql`${fields}::jsonb` })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .execute();
}

/** Fails on a foreign key if the type has instances. */
export async function deleteType(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void> {
  await transaction.deleteFrom('custom_entity').where('tenant', '=', tenant).where('id', '=', id).execute();
}
