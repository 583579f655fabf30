import { type AnnalsError, invalidBody } from '../../core/errors.ts';
import { mask, type Sealer } from '../../core/sealing.ts';
import type { Author } from '../../http/credentials.ts';
import { refusedAddress } from '../../outbound/addresses.ts';
import type { Database } from '../../postgres/database.ts';
import { faultOfDocumentId, ownDocuments } from '../../recording/documents/own-documents.ts';
import { openHeaders, sealHeaders, takeHeaders } from '../mcp/headers.ts';
import { type AgentRow, agentNoun, agentTable, resetFailures } from './agent-store.ts';
import {
  type AgentHead,
  type BodyHead,
  patchedAgent,
  readAgentHead,
  refuseFaults,
  writtenAgent,
} from './agent-texts.ts';
import { addressField, addressOf } from './llm-config.ts';
import type { AgentBody } from './schemas.ts';
import { sealKey } from './secrets.ts';

/** Whether a URL has an IP address that the operator has not allowed, so that no call could succeed. */
export type RefusesAddress = (url: string) => boolean;

export interface OwnAgents {
  /** The agent as JSON text. Throws resource_not_found. */
  find(tenant: string, id: string): Promise<string>;
  /** `text` is the JSON text of the body. */
  put(author: Author, id: string, sent: { body: AgentBody; text: string }): Promise<'created' | 'replaced'>;
  /** `patch` is the JSON text of a validated patch. */
  patch(author: Author, id: string, patch: string): Promise<void>;
  remove(author: Author, id: string): Promise<void>;
}

/** The body of a PUT, or the patched agent. */
interface Sent {
  readonly version: number | undefined;
  readonly body: BodyHead;
  /** JSON text. */
  readonly text: string;
}

/** Reads and writes agents by id (contract 8). */
export function createOwnAgents(options: {
  db: Database;
  sealer: Sealer;
  now: () => number;
  refusesAddress: RefusesAddress;
}): OwnAgents {
  const agents = ownDocuments(options, {
    noun: agentNoun,
    table: agentTable,
    entity: agentNoun,
    async written({ body, text }: Sent, { transaction, author: { tenant }, id, version, now }, current) {
      const { agent, before, document, fields } = await writtenAgent(text, { id, version, now }, current?.document);
      refuseAddresses(body, before);
      const stored = before && current && { head: before, ...current };
      const { sealedKey, isNew } = keyOf({ tenant, id }, body, stored);
      const { sealedHeaders, replaced } = headersOf({ tenant, id }, body, stored);
      const { term } = current ?? { term: 1 };
      const isReenabled = agent.enabled && before?.enabled === false;
      return {
        row: {
          document,
          fields,
          sealedKey,
          sealedHeaders,
          term: isReenabled ? term + 1 : term,
          enabled: agent.enabled,
        },
        name: agent.shownName,
        replacedSecrets: [...(isNew ? ['llmConfig.apiKey'] : []), ...replaced],
        also: isReenabled ? () => resetFailures(transaction, tenant, { id, term: term + 1 }) : undefined,
      };
    },
    nameOf: async (document) => (await readAgentHead(document)).shownName,
  });

  /** Refuses addresses that can never be called, except those of the stored agent. */
  function refuseAddresses({ llmConfig, mcpServers }: BodyHead, before: AgentHead | undefined): void {
    const former = new Set([
      before && addressOf(before.llmConfig),
      ...(before?.mcpServers ?? []).map(({ url }) => url),
    ]);
    const named = [
      { field: addressField(llmConfig?.provider), url: llmConfig && addressOf(llmConfig) },
      ...(mcpServers ?? []).map(({ url }, index) => ({ field: `mcpServers.${index}.url`, url })),
    ];
    const refused = named.filter(({ url }) => url !== undefined && !former.has(url) && options.refusesAddress(url));
    if (refused.length > 0) throw invalidBody(...refused.map(({ field }) => ({ field, message: refusedAddress })));
  }

  /**
   * A client that sends the mask back keeps the stored key, which is never sent to an address that it was not set for.
   * `isNew`: whether it replaces another one.
   */
  function keyOf(
    { tenant, id }: { tenant: string; id: string },
    { llmConfig }: BodyHead,
    before: (AgentRow & { readonly head: AgentHead }) | undefined,
  ): { sealedKey: Uint8Array | null; isNew: boolean } {
    const stored = before?.sealedKey ?? null;
    const apiKey = llmConfig?.apiKey;
    if (llmConfig === undefined || apiKey === undefined) return { sealedKey: null, isNew: false };
    if (apiKey !== mask) {
      return { sealedKey: sealKey(options.sealer, tenant, id, apiKey), isNew: stored !== null };
    }
    if (before === undefined) throw keyIsMasked('must be the key itself: this is the mask that responses show');
    const { llmConfig: previous } = before.head;
    const sameReader = previous.provider === llmConfig.provider && addressOf(previous) === addressOf(llmConfig);
    if (stored === null || !sameReader) throw keyIsMasked('must be re-entered for another provider or address');
    return { sealedKey: stored, isNew: false };
  }

  function headersOf(
    { tenant, id }: { tenant: string; id: string },
    { mcpServers }: BodyHead,
    before: (AgentRow & { readonly head: AgentHead }) | undefined,
  ): { sealedHeaders: Uint8Array | null; replaced: string[] } {
    const { headers, replaced } = takeHeaders(mcpServers ?? [], {
      servers: before?.head.mcpServers ?? [],
      stored: openHeaders(options.sealer, tenant, id, before?.sealedHeaders ?? null),
    });
    return { sealedHeaders: sealHeaders(options.sealer, tenant, id, headers), replaced };
  }

  return {
    find: agents.find,
    remove: agents.remove,

    async put(author, id, { body, text }) {
      const fault = faultOfDocumentId(id);
      if (fault !== undefined) throw invalidBody({ field: 'id', message: fault });
      refuseFaults(id, body);
      return await agents.put(author, id, { version: body.metadata?.version, body, text });
    },

    async patch(author, id, patch) {
      await agents.replace(author, id, async ({ document }) => {
        const { body, text } = await patchedAgent(document, patch);
        return { version: body.metadata?.version, body, text };
      });
    },
  };
}

function keyIsMasked(message: string): AnnalsError {
  return invalidBody({ field: 'llmConfig.apiKey', message });
}
