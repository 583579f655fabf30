import type { DatabaseTransaction } from '../db/database.ts';
import { changeOfDocuments } from '../recording/change.ts';
import { recordChange } from '../recording/record-change.ts';
import { type AgentDocument, agentText, displayName } from './agent-document.ts';
import { mask } from './schemas.ts';

export interface AgentChange {
  readonly before?: AgentDocument;
  readonly after?: AgentDocument;
  /** Its key was replaced, which documents do not show. */
  readonly replacedKey?: boolean;
}

/** Records what became of an agent in the transaction that changes it; `at` is in milliseconds since 1970. */
export async function recordAgentChange(
  transaction: DatabaseTransaction,
  tenant: string,
  { before, after, replacedKey = false }: AgentChange,
  { actor, at }: { actor: string; at: number },
): Promise<void> {
  const agent = after ?? before;
  if (agent === undefined) return;
  const change = changeOfDocuments({
    type: before === undefined ? 'create' : after === undefined ? 'delete' : 'update',
    entity: 'agent',
    entityId: agent.id,
    at,
    actor,
    name: displayName(agent),
    before: before && agentText(before),
    after: after && agentText(after),
  });
  if (change === 'unchanged') return;
  const paths = replacedKey ? withReplacedKey(change.paths) : change.paths;
  await recordChange(transaction, tenant, { ...change, paths }, at);
}

/** Both masks are equal, so that a comparison does not see what did change (contract 6). */
function withReplacedKey(paths: string): string {
  const replaced = `"llmConfig.apiKey":${JSON.stringify({ before: mask, after: mask })}`;
  const rest = paths.slice(1);
  return `{${replaced}${rest === '}' ? '' : ','}${rest}`;
}
