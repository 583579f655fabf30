import type { DatabaseTransaction } from '../db/database.ts';
import { type Author, recordDocumentChange } from '../recording/record-document-change.ts';
import { type AgentDocument, agentText, displayName } from './agent-document.ts';

export interface AgentChange {
  readonly before?: AgentDocument;
  readonly after?: AgentDocument;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The change replaced the key, which the documents do not show. */
  readonly replacedKey?: boolean;
}

/** Records the change of an agent in the same transaction. */
export async function recordAgentChange(
  transaction: DatabaseTransaction,
  author: Author,
  { before, after, at, replacedKey = false }: AgentChange,
): Promise<void> {
  const agent = after ?? before;
  if (agent === undefined) return;
  await recordDocumentChange(transaction, author, {
    entity: 'agent',
    entityId: agent.id,
    at,
    name: displayName(agent),
    before: before && agentText(before),
    after: after && agentText(after),
    replacedSecret: replacedKey ? 'llmConfig.apiKey' : undefined,
  });
}
