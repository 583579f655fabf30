import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { documentTable, type StoredDocument } from '../../recording/documents/document-table.ts';
import './tables.ts';

/** What messages and the change history call agents. */
export const agentNoun = 'agent';

export interface AgentColumns {
  readonly sealedKey: Uint8Array | null;
  /** The headers of its MCP servers. */
  readonly sealedHeaders: Uint8Array | null;
  /** How often the agent has been enabled. */
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
 * Adds a configuration failure of a chat that began in that term, and locks the row until the transaction ends, so that
 * other failures wait. Returns the new count; undefined where the failure no longer counts.
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

/** After a success or in a new term. Neither locks nor writes if the count is zero. */
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
