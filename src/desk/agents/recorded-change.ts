import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Author, recordDocumentChange } from '../../recording/record-document-change.ts';
import type { AgentHead } from './agent-texts.ts';

export interface AgentChange {
  /** The agent as it is now, or as it was last. */
  readonly agent: AgentHead;
  /** JSON texts. */
  readonly before?: string;
  readonly after?: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The change replaced the key, which the documents do not show. */
  readonly replacedKey?: boolean;
}

/** Records the change of an agent in the same transaction. */
export async function recordAgentChange(
  transaction: DatabaseTransaction,
  author: Author,
  { agent, before, after, at, replacedKey = false }: AgentChange,
): Promise<void> {
  await recordDocumentChange(transaction, author, {
    entity: 'agent',
    entityId: agent.id,
    at,
    name: agent.shownName,
    before,
    after,
    replacedSecret: replacedKey ? 'llmConfig.apiKey' : undefined,
  });
}
