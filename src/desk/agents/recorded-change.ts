import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Author, type RecordedDocument, recordDocumentChange } from '../../recording/record-document-change.ts';
import type { AgentHead } from './agent-texts.ts';

/** Records the change of an agent in the same transaction. `agent` is as it is now, or as it was last. */
export async function recordAgentChange(
  transaction: DatabaseTransaction,
  author: Author,
  agent: AgentHead,
  change: Pick<RecordedDocument, 'before' | 'after' | 'at' | 'replacedSecrets'>,
): Promise<void> {
  const document = { entity: 'agent', entityId: agent.id, name: agent.shownName };
  await recordDocumentChange(transaction, author, { ...document, ...change });
}
