import { AnnalsError, invalidBody } from '../../core/errors.ts';
import { mask } from '../../core/mask.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { Author } from '../../recording/record-document-change.ts';
import { faultOfAgentId } from './agent-document.ts';
import { type AgentRow, deleteAgent, findAgent, insertAgent, updateAgent } from './agent-store.ts';
import {
  type AgentHead,
  type BodyHead,
  patchedAgent,
  readAgentHead,
  refuseFaults,
  writtenAgent,
} from './agent-texts.ts';
import { addressOf } from './llm-config.ts';
import { recordAgentChange } from './recorded-change.ts';
import type { AgentBody } from './schemas.ts';
import { sealKey } from './secrets.ts';

export interface AgentWrites {
  /** `text` is the JSON text of the body. */
  put(author: Author, id: string, sent: { body: AgentBody; text: string }): Promise<'created' | 'replaced'>;
  /** `patch` is the JSON text of a patch that has been validated. */
  patch(author: Author, id: string, patch: string): Promise<void>;
  remove(author: Author, id: string): Promise<void>;
}

/** The body of a PUT, or what a patch makes of the stored agent. */
interface Sent {
  readonly body: BodyHead;
  /** JSON text. */
  readonly text: string;
}

/** Writes agents (contract 8). Each write and its change entry are one transaction. */
export function createAgentWrites(options: { db: Database; sealer: Sealer; now: () => number }): AgentWrites {
  const { db, sealer, now } = options;

  async function insert(author: Author, id: string, { body, text }: Sent): Promise<boolean> {
    const { tenant } = author;
    const apiKey = body.llmConfig?.apiKey;
    if (apiKey === mask) throw keyIsMasked('must be the key itself: this is the mask that answers show');
    return await inTransaction(db, async (transaction) => {
      const at = now();
      const { agent, document, fields } = await writtenAgent(text, { id, version: 1, now: at }, undefined);
      const sealedKey = apiKey === undefined ? null : sealKey(sealer, tenant, id, apiKey);
      const row = { id, version: 1, document, fields, sealedKey, term: 1, enabled: agent.enabled };
      if (!(await insertAgent(transaction, tenant, row))) return false;
      await recordAgentChange(transaction, author, agent, { after: document, at });
      return true;
    });
  }

  async function replace(
    transaction: DatabaseTransaction,
    author: Author,
    id: string,
    { current, sent: { body, text } }: { current: AgentRow; sent: Sent },
  ): Promise<void> {
    const { tenant } = author;
    const sentVersion = body.metadata?.version;
    if (sentVersion !== undefined && sentVersion !== current.version) throw oldVersion();
    const at = now();
    const version = current.version + 1;
    const { agent, before, document, fields } = await writtenAgent(text, { id, version, now: at }, current.document);
    const { sealedKey, isNew } = keyOf(tenant, before, current, body);
    const term = agent.enabled && before?.enabled === false ? current.term + 1 : current.term;
    const row = { id, version, document, fields, sealedKey, term, enabled: agent.enabled };
    await updateAgent(transaction, tenant, row);
    const replacedSecrets = isNew ? ['llmConfig.apiKey'] : [];
    const change = { before: current.document, after: document, at, replacedSecrets };
    await recordAgentChange(transaction, author, agent, change);
  }

  /**
   * A client that sends the mask back keeps the stored key. The service never sends a key to an address that the key
   * was not set for.
   */
  function keyOf(
    tenant: string,
    before: AgentHead | undefined,
    { sealedKey }: AgentRow,
    { llmConfig }: BodyHead,
  ): { sealedKey: Uint8Array | null; isNew: boolean } {
    const apiKey = llmConfig?.apiKey;
    if (llmConfig === undefined || apiKey === undefined || before === undefined) {
      return { sealedKey: null, isNew: false };
    }
    if (apiKey !== mask) return { sealedKey: sealKey(sealer, tenant, before.id, apiKey), isNew: sealedKey !== null };
    const sameReader =
      before.llmConfig.provider === llmConfig.provider && addressOf(before.llmConfig) === addressOf(llmConfig);
    if (sealedKey === null || !sameReader) throw keyIsMasked('must be given anew for another provider or address');
    return { sealedKey, isNew: false };
  }

  return {
    async put(author, id, sent) {
      const fault = faultOfAgentId(id);
      if (fault !== undefined) throw invalidBody({ field: 'id', message: fault });
      refuseFaults(id, sent.body);
      for (;;) {
        const replaced = await inTransaction(db, async (transaction) => {
          const current = await findAgent(transaction, author.tenant, id, { lock: true });
          if (current !== undefined) await replace(transaction, author, id, { current, sent });
          return current !== undefined;
        });
        if (replaced) return 'replaced';
        // The agent does not exist, so any version that the client sends is old.
        if (sent.body.metadata?.version !== undefined) throw oldVersion();
        // Another request may have created the agent meanwhile. Then this request replaces it.
        if (await insert(author, id, sent)) return 'created';
      }
    },

    async patch(author, id, patch) {
      await inTransaction(db, async (transaction) => {
        const current = await findAgent(transaction, author.tenant, id, { lock: true });
        if (current === undefined) throw agentNotFound();
        await replace(transaction, author, id, { current, sent: await patchedAgent(current.document, patch) });
      });
    },

    async remove(author, id) {
      const { tenant } = author;
      await inTransaction(db, async (transaction) => {
        const current = await findAgent(transaction, tenant, id, { lock: true });
        if (current === undefined) throw agentNotFound();
        await deleteAgent(transaction, tenant, id);
        const { document: before } = current;
        await recordAgentChange(transaction, author, await readAgentHead(before), { before, at: now() });
      });
    },
  };
}

export function agentNotFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no such agent.');
}

function oldVersion(): AnnalsError {
  return new AnnalsError('conflict_resource', 'The agent has changed: its metadata.version is a different one.');
}

function keyIsMasked(message: string): AnnalsError {
  return invalidBody({ field: 'llmConfig.apiKey', message });
}
