import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type RecordedDocument, recordDocumentChange } from '../../recording/record-document-change.ts';
import type { McpServer } from '../mcp/schemas.ts';
import { agentNoun, agentTable } from './agent-store.ts';
import { markedAgent } from './agent-texts.ts';

/**
 * Marks an agent's approved tools that have changed, and records that. No-op if the agent is unchanged or gone. `at` is
 * in milliseconds since 1970.
 */
export async function markTools(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, compared, at }: { id: string; compared: readonly McpServer[]; at: number },
): Promise<void> {
  const current = await agentTable.find(transaction, tenant, id, { lock: true });
  if (current === undefined) return;
  const version = current.version + 1;
  const marked = await markedAgent(current.document, { version, time: new Date(at).toISOString(), compared });
  if (marked === undefined) return;
  const { agent, document, fields } = marked;
  await agentTable.update(transaction, tenant, id, { ...current, version, document, fields });
  const change: RecordedDocument = {
    entity: agentNoun,
    entityId: id,
    at,
    name: agent.shownName,
    before: current.document,
    after: document,
  };
  await recordDocumentChange(transaction, { tenant, actor: 'system' }, change);
}
