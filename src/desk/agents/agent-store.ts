import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/document-lists.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { documentTable, type StoredDocument } from '../../recording/documents/document-table.ts';
import './tables.ts';

/** What agents are called in messages, and in the change history. */
export const agentNoun = 'agent';

export interface AgentColumns {
  readonly sealedKey: Uint8Array | null;
  /** The headers of its servers of tools. */
  readonly sealedHeaders: Uint8Array | null;
  /** How often the agent was enabled. */
  readonly term: number;
  readonly enabled: boolean;
}

export type AgentRow = StoredDocument & AgentColumns;

export const agentTable = documentTable<AgentColumns>('agent', {
  sealedKey: 'sealed_key',
  sealedHeaders: 'sealed_headers',
  term: 'term',
  enabled: 'enabled',
});

/** The agents of a tenant, for lists. */
export function agentRows(tenant: string): DocumentRows {
  return { from: sql`agent`, where: sql`tenant = ${tenant}` };
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
    .where(({ and }) => and({ tenant, id, enabled: true, term }))
    .returning('failures')
    .executeTakeFirst();
  return row?.failures;
}

/** After a success, or in a new term. Locks and writes nothing where the count is zero. */
export async function resetFailures(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, term }: { id: string; term: number },
): Promise<void> {
  await transaction
    .updateTable('agent')
    .set({ failures: 0 })
    .where(({ and }) => and({ tenant, id, term }))
    .where('failures', '>', 0)
    .execute();
}
