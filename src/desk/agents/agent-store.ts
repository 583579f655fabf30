import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/document-lists.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import './tables.ts';

export interface AgentRow {
  readonly version: number;
  /** JSON text. */
  readonly document: string;
  readonly sealedKey: Uint8Array | null;
  readonly term: number;
}

export interface AgentWritten extends AgentRow {
  readonly id: string;
  /** The text for the jsonb column. */
  readonly fields: string;
  readonly enabled: boolean;
}

/** The agents of a tenant, for lists. */
export function agentRows(tenant: string): DocumentRows {
  return { from: sql`agent`, where: sql`tenant = ${tenant}` };
}

export async function findAgent(
  db: Database | DatabaseTransaction,
  tenant: string,
  id: string,
  options: { lock?: boolean } = {},
): Promise<AgentRow | undefined> {
  // PostgreSQL cannot store such an id, so no agent has it.
  if (/[\0\p{Surrogate}]/u.test(id)) return undefined;
  const query = db
    .selectFrom('agent')
    .select(['version', 'document', 'sealed_key as sealedKey', 'term'])
    .where('tenant', '=', tenant)
    .where('id', '=', id);
  return await (options.lock === true ? query.forUpdate() : query).executeTakeFirst();
}

/** Returns false where an agent with this id exists. */
export async function insertAgent(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, version, document, fields, sealedKey, enabled }: AgentWritten,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto('agent')
    .values({ tenant, id, version, document, fields: sql`${fields}::jsonb`, sealed_key: sealedKey, enabled })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

/** A new term resets the count of failures. */
export async function updateAgent(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, version, document, fields, sealedKey, enabled, term }: AgentWritten,
): Promise<void> {
  await transaction
    .updateTable('agent')
    .set({
      version,
      document,
      fields: sql`${fields}::jsonb`,
      sealed_key: sealedKey,
      enabled,
      failures: sql`case when term = ${term} then failures else 0 end`,
      term,
    })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .execute();
}

export async function deleteAgent(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void> {
  await transaction.deleteFrom('agent').where('tenant', '=', tenant).where('id', '=', id).execute();
}

/**
 * Adds one configuration failure of a chat that began in that term. The row stays locked until the transaction ends, so
 * other failures wait. Returns the new count, or undefined where the failure no longer counts.
 */
export async function countFailure(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, term }: { id: string; term: number },
): Promise<number | undefined> {
  const row = await transaction
    .updateTable('agent')
    .set({ failures: sql`failures + 1` })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .where('enabled', '=', true)
    .where('term', '=', term)
    .returning('failures')
    .executeTakeFirst();
  return row?.failures;
}

/** After a success. Locks and writes nothing where the count is zero. */
export async function resetFailures(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, term }: { id: string; term: number },
): Promise<void> {
  await transaction
    .updateTable('agent')
    .set({ failures: 0 })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .where('term', '=', term)
    .where('failures', '>', 0)
    .execute();
}
