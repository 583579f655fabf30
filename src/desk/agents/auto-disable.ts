import { randomUUID } from 'node:crypto';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { recordDocumentChange } from '../../recording/record-document-change.ts';
import { agentNoun, agentTable, countFailure } from './agent-store.ts';
import { type AgentHead, disabledAgent } from './agent-texts.ts';
import type { QueueMail } from './ports.ts';

/** The tenth consecutive configuration failure disables the agent (spec: limits). */
const maxFailures = 10;

export interface FailedAgent {
  readonly id: string;
  /** The term in which the chat began. A failure does not count once the agent has been enabled again. */
  readonly term: number;
  /** The cause for people. Only the tenant can remove it. */
  readonly reason: string;
  /** The address for the e-mail; undefined where the tenant has set none. */
  readonly notificationEmail: string | undefined;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * Counts a configuration failure in the transaction that logs it, and disables the agent at the tenth. Other failures
 * wait for the row and then no longer count, so the agent is disabled once, with one e-mail (contract 8). Returns
 * whether this call disabled it.
 */
export async function noteFailure(
  transaction: DatabaseTransaction,
  tenant: string,
  failed: FailedAgent,
  queueMail: QueueMail,
): Promise<boolean> {
  const failures = await countFailure(transaction, tenant, failed);
  if (failures === undefined || failures < maxFailures) return false;
  const current = await agentTable.find(transaction, tenant, failed.id, { lock: true });
  if (current === undefined) return false;
  const time = new Date(failed.at).toISOString();
  const version = current.version + 1;
  const reason = reasonOf(failed, time);
  const { agent, document, fields } = await disabledAgent(current.document, { version, time, reason });
  await agentTable.update(transaction, tenant, failed.id, { ...current, version, document, fields, enabled: false });
  await recordDocumentChange(
    transaction,
    { tenant, actor: 'system' },
    {
      entity: agentNoun,
      entityId: failed.id,
      at: failed.at,
      name: agent.shownName,
      before: current.document,
      after: document,
    },
  );
  if (failed.notificationEmail !== undefined) {
    await queueMail(transaction, { tenant, to: failed.notificationEmail, ...mailOf(tenant, agent, failed, time) });
  }
  return true;
}

function reasonOf({ reason, notificationEmail }: FailedAgent, time: string): string {
  const cause = `${maxFailures} configuration failures in a row, the last at ${time}: ${reason}`;
  if (notificationEmail !== undefined) return cause;
  return `${cause} No e-mail was sent: the configuration key notificationEmail holds no address.`;
}

function mailOf(tenant: string, agent: AgentHead, { id, reason }: FailedAgent, time: string) {
  const name = (agent.shownName ?? id).replaceAll(/[\p{Cc}\p{Surrogate}]/gu, ' ').trim();
  const text = [
    `The agent "${name}" (id ${id}) of the tenant ${tenant} was disabled at ${time},`,
    `because ${maxFailures} chats in a row failed for a reason that only you can mend. The last one:`,
    '',
    `  ${reason}`,
    '',
    `Provider: ${agent.llmConfig.provider}`,
    ...(agent.llmConfig.model === undefined ? [] : [`Model: ${agent.llmConfig.model}`]),
    '',
    'Correct its llmConfig and set enabled to true again. Until then its chats get 409.',
  ].join('\n');
  const subject = `Annals: the agent "${[...name].slice(0, 100).join('')}" was disabled`;
  return { subject, text, messageId: `<agent-disabled.${randomUUID()}@annals>` };
}
