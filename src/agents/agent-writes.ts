import { Compile } from 'typebox/compile';
import type { Database, DatabaseTransaction } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';
import { AnnalsError } from '../errors.ts';
import { compileValidator } from '../http/validation.ts';
import { parseJson } from '../json/parse.ts';
import { refuseLargeDocument, sizeOfJson } from '../json/size.ts';
import { mask } from '../recording/mask.ts';
import type { Author } from '../recording/record-document-change.ts';
import type { Sealer } from '../sealing.ts';
import {
  type AgentDocument,
  agentText,
  contentOf,
  faultOfAgentId,
  faultsOfBody,
  invalid,
  parseAgent,
  projectionOf,
} from './agent-document.ts';
import { patchedText } from './agent-patch.ts';
import { type AgentRow, deleteAgent, findAgent, insertAgent, updateAgent } from './agent-store.ts';
import { recordAgentChange } from './recorded-change.ts';
import { AgentBody, type AgentPatch } from './schemas.ts';
import { sealKey } from './secrets.ts';
import { addressOf } from './self-hosted-address.ts';

export interface AgentWrites {
  put(author: Author, id: string, body: AgentBody): Promise<'created' | 'replaced'>;
  patch(author: Author, id: string, patch: AgentPatch): Promise<void>;
  remove(author: Author, id: string): Promise<void>;
}

const validateBody = compileValidator({ schema: AgentBody, method: 'PATCH', url: '', httpPart: 'body' });
const isBody = Compile(AgentBody);

/** Writes agents (contract 8). Each write and its change entry are one transaction. */
export function createAgentWrites(options: { db: Database; sealer: Sealer; now: () => number }): AgentWrites {
  const { db, sealer, now } = options;

  async function insert(author: Author, id: string, body: AgentBody): Promise<boolean> {
    const { tenant } = author;
    const apiKey = body.llmConfig?.apiKey;
    if (apiKey === mask) throw keyIsMasked('must be the key itself: this is the mask that answers show');
    return await inTransaction(db, async (transaction) => {
      const at = now();
      const time = new Date(at).toISOString();
      const metadata = { version: 1, createdAt: time, modifiedAt: time };
      const after = { id, ...contentOf(body, undefined), metadata } as AgentDocument;
      const document = agentText(after);
      refuseLargeDocument('An agent', sizeOfJson(parseJson(document)));
      const sealedKey = apiKey === undefined ? null : sealKey(sealer, tenant, id, apiKey);
      const row = { id, version: 1, document, fields: projectionOf(document), sealedKey, term: 1 };
      if (!(await insertAgent(transaction, tenant, { ...row, enabled: after.enabled }))) return false;
      await recordAgentChange(transaction, author, { after, at });
      return true;
    });
  }

  async function replace(
    transaction: DatabaseTransaction,
    author: Author,
    current: AgentRow,
    body: AgentBody,
  ): Promise<void> {
    const { tenant } = author;
    const sentVersion = body.metadata?.version;
    if (sentVersion !== undefined && sentVersion !== current.version) throw oldVersion();
    const before = parseAgent(current.document);
    const { id } = before;
    const at = now();
    const content = contentOf(body, before);
    const version = current.version + 1;
    const createdAt = before.metadata.createdAt;
    const modifiedAt = new Date(Math.max(at, Date.parse(createdAt))).toISOString();
    const reason = content.enabled ? undefined : before.disabledReason;
    const metadata = { version, createdAt, modifiedAt };
    const after = { id, ...content, metadata, disabledReason: reason } as AgentDocument;
    const document = agentText(after);
    refuseLargeDocument('An agent', sizeOfJson(parseJson(document)));
    const { sealedKey, isNew } = keyOf(tenant, before, current, body);
    const term = after.enabled && !before.enabled ? current.term + 1 : current.term;
    const row = { id, version, document, fields: projectionOf(document), sealedKey, term };
    await updateAgent(transaction, tenant, { ...row, enabled: after.enabled });
    await recordAgentChange(transaction, author, { before, after, at, replacedKey: isNew });
  }

  /**
   * A client that sends the mask back keeps the stored key. The service never sends a key to an address that the key
   * was not set for.
   */
  function keyOf(
    tenant: string,
    before: AgentDocument,
    { sealedKey }: AgentRow,
    { llmConfig }: AgentBody,
  ): { sealedKey: Uint8Array | null; isNew: boolean } {
    const apiKey = llmConfig?.apiKey;
    if (llmConfig === undefined || apiKey === undefined) return { sealedKey: null, isNew: false };
    if (apiKey !== mask) return { sealedKey: sealKey(sealer, tenant, before.id, apiKey), isNew: sealedKey !== null };
    const sameReader =
      before.llmConfig.provider === llmConfig.provider && addressOf(before.llmConfig) === addressOf(llmConfig);
    if (sealedKey === null || !sameReader) throw keyIsMasked('must be given anew for another provider or address');
    return { sealedKey, isNew: false };
  }

  return {
    async put(author, id, body) {
      const fault = faultOfAgentId(id);
      if (fault !== undefined) throw invalid([{ field: 'id', message: fault }]);
      refuseFaults(id, body);
      for (;;) {
        const replaced = await inTransaction(db, async (transaction) => {
          const current = await findAgent(transaction, author.tenant, id, { lock: true });
          if (current !== undefined) await replace(transaction, author, current, body);
          return current !== undefined;
        });
        if (replaced) return 'replaced';
        // The agent does not exist, so any version that the client sends is old.
        if (body.metadata?.version !== undefined) throw oldVersion();
        // Another request may have created the agent meanwhile. Then this request replaces it.
        if (await insert(author, id, body)) return 'created';
      }
    },

    async patch(author, id, patch) {
      await inTransaction(db, async (transaction) => {
        const current = await findAgent(transaction, author.tenant, id, { lock: true });
        if (current === undefined) throw agentNotFound();
        const before = parseAgent(current.document);
        const wanted: unknown = JSON.parse(patchedText(current.document, patch));
        if (!isBody.Check(wanted)) throw validationError(wanted);
        if (wanted.disabledReason !== before.disabledReason) {
          throw invalid([{ field: 'disabledReason', message: 'is read-only' }]);
        }
        refuseFaults(id, wanted);
        await replace(transaction, author, current, wanted);
      });
    },

    async remove(author, id) {
      const { tenant } = author;
      await inTransaction(db, async (transaction) => {
        const current = await findAgent(transaction, tenant, id, { lock: true });
        if (current === undefined) throw agentNotFound();
        await deleteAgent(transaction, tenant, id);
        await recordAgentChange(transaction, author, { before: parseAgent(current.document), at: now() });
      });
    },
  };
}

export function agentNotFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no such agent.');
}

function refuseFaults(id: string, body: AgentBody): void {
  const details = faultsOfBody(body);
  if (body.id !== undefined && body.id !== id) details.push({ field: 'id', message: 'must be that of the path' });
  if (details.length > 0) throw invalid(details);
}

function validationError(wanted: unknown): Error {
  const result = validateBody(wanted);
  const error = typeof result === 'object' && result !== null && 'error' in result ? result.error : undefined;
  return error instanceof Error ? error : invalid([]);
}

function oldVersion(): AnnalsError {
  return new AnnalsError('conflict_resource', 'The agent has been changed since: its metadata.version is another one.');
}

function keyIsMasked(message: string): AnnalsError {
  return invalid([{ field: 'llmConfig.apiKey', message }]);
}
