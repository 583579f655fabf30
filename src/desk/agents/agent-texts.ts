import { isDeepStrictEqual } from 'node:util';
import { compiledOnce } from '../../core/compiled-once.ts';
import { threaded } from '../../core/concurrency/threaded.ts';
import { invalidBody } from '../../core/errors.ts';
import { parseJson } from '../../core/json/parse.ts';
import { refuseLargeDocument, sizeOfJson } from '../../core/json/size.ts';
import { compileValidator } from '../../http/validation.ts';
import { projectedJson } from '../../query/json-projection.ts';
import { metadataOf } from '../../recording/documents/own-documents.ts';
import type { McpServer } from '../mcp/schemas.ts';
import { withStates } from '../mcp/servers.ts';
import { contentOf, displayName, faultsOfBody } from './agent-document.ts';
import { patchedText } from './agent-patch.ts';
import type { AgentDocument } from './answer-schemas.ts';
import { AgentBody, type AgentPatch } from './schemas.ts';

/** An agent without what may be long and what only its readers need: its triggers, and texts in several languages. */
export type AgentHead = Omit<AgentDocument, 'triggers' | 'name' | 'description'> & {
  /** The name that change entries and e-mails show. */
  readonly shownName: string | undefined;
};

/** The members of a body that decide on a write. */
export interface BodyHead {
  readonly llmConfig?: AgentBody['llmConfig'] | undefined;
  readonly mcpServers?: AgentBody['mcpServers'] | undefined;
  readonly metadata?: AgentBody['metadata'] | undefined;
}

export interface WrittenAgent {
  readonly agent: AgentHead;
  /** The agent that it replaces. */
  readonly before: AgentHead | undefined;
  /** The JSON text that Annals stores and sends. */
  readonly document: string;
  /** The text for the jsonb column. */
  readonly fields: string;
}

const validateBody = compileValidator({ schema: AgentBody, method: 'PATCH', url: '', httpPart: 'body' });
const bodyCheck = compiledOnce(AgentBody);

/** Reads a stored agent. */
export const readAgentHead = threaded(import.meta.url, 'readAgentHead', (document: string) =>
  headOf(JSON.parse(document)),
);

/**
 * The agent with the content of a body that has been validated. `before` is the stored agent that it replaces. Throws
 * payload_too_large (contract 11), and validation_violation for text that PostgreSQL cannot store.
 */
export const writtenAgent = threaded(
  import.meta.url,
  'writtenAgent',
  (
    bodyText: string,
    { id, version, now }: { id: string; version: number; now: number },
    beforeText: string | undefined,
  ): WrittenAgent => {
    const before: AgentDocument | undefined = beforeText === undefined ? undefined : JSON.parse(beforeText);
    const body: AgentBody = JSON.parse(bodyText);
    const content = contentOf(body, before);
    const metadata = metadataOf({ version, now }, before?.metadata.createdAt);
    const disabledReason = content.enabled ? undefined : before?.disabledReason;
    return {
      ...written({ id, ...content, metadata, disabledReason } as AgentDocument),
      before: before && headOf(before),
    };
  },
);

/** The stored agent, disabled for a reason. `time` is in RFC 3339. */
export const disabledAgent = threaded(
  import.meta.url,
  'disabledAgent',
  (document: string, { version, time, reason }: { version: number; time: string; reason: string }): WrittenAgent => {
    const before: AgentDocument = JSON.parse(document);
    const metadata = { ...before.metadata, version, modifiedAt: time };
    return { ...written({ ...before, enabled: false, metadata, disabledReason: reason }), before: headOf(before) };
  },
);

/** The stored agent with the states of tools that were compared; undefined where it has them already. `time` is in RFC 3339. */
export const markedAgent = threaded(
  import.meta.url,
  'markedAgent',
  (
    document: string,
    { version, time, compared }: { version: number; time: string; compared: readonly McpServer[] },
  ): WrittenAgent | undefined => {
    const before: AgentDocument = JSON.parse(document);
    const mcpServers = withStates(before.mcpServers ?? [], compared);
    if (mcpServers === undefined) return undefined;
    const metadata = { ...before.metadata, version, modifiedAt: time };
    return { ...written({ ...before, mcpServers, metadata }), before: headOf(before) };
  },
);

/**
 * Applies a patch to a stored agent, and checks the outcome as the body of a PUT. `text` is that body. Throws
 * validation_violation and payload_too_large.
 */
export const patchedAgent = threaded(
  import.meta.url,
  'patchedAgent',
  (document: string, patchText: string): { text: string; body: BodyHead } => {
    const patch: AgentPatch = JSON.parse(patchText);
    const before: AgentDocument = JSON.parse(document);
    const text = patchedText(document, before, patch);
    const wanted: unknown = JSON.parse(text);
    const judged = withoutUnchanged(wanted, before);
    if (!bodyCheck().Check(judged)) throw validationError(judged);
    refuseReadOnly(judged, before);
    // What is unchanged was taken out above.
    const isThere = typeof wanted === 'object' && wanted !== null && 'nativeTools' in wanted;
    refuseFaults(before.id, { ...judged, nativeTools: judged.nativeTools ?? (isThere ? before.nativeTools : []) });
    const { llmConfig, mcpServers, metadata } = judged;
    return { text, body: { llmConfig, mcpServers, metadata } };
  },
);

/** Earlier versions took triggers and tools that this one refuses. A patch of something else leaves them as they are. */
function withoutUnchanged(wanted: unknown, before: AgentDocument): unknown {
  if (typeof wanted !== 'object' || wanted === null) return wanted;
  const stored: ReadonlyMap<string, unknown> = new Map(Object.entries(before));
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([key, value]) => !(keptMembers.has(key) && isDeepStrictEqual(value, stored.get(key))),
    ),
  );
}

const keptMembers: ReadonlySet<string> = new Set(['triggers', 'nativeTools']);

/** A PUT ignores what only the service writes, since answers have it. A patch names what it wants to change. */
function refuseReadOnly({ disabledReason, metadata }: AgentBody, before: AgentDocument): void {
  const wanted = {
    disabledReason,
    'metadata.createdAt': metadata?.createdAt,
    'metadata.modifiedAt': metadata?.modifiedAt,
  };
  const { createdAt, modifiedAt } = before.metadata;
  const stored = {
    disabledReason: before.disabledReason,
    'metadata.createdAt': createdAt,
    'metadata.modifiedAt': modifiedAt,
  };
  const changed = Object.entries(wanted).filter(([field, value]) => value !== stored[field as keyof typeof stored]);
  if (changed.length > 0) throw invalidBody(...changed.map(([field]) => ({ field, message: 'is read-only' })));
}

/** Throws validation_violation for the faults of a body that the schema alone cannot find. */
export function refuseFaults(id: string, body: AgentBody): void {
  const details = faultsOfBody(body);
  if (body.id !== undefined && body.id !== id) details.push({ field: 'id', message: 'must be that of the path' });
  if (details.length > 0) throw invalidBody(...details);
}

function written(agent: AgentDocument): Omit<WrittenAgent, 'before'> {
  const document = JSON.stringify(agent);
  refuseLargeDocument('An agent', sizeOfJson(parseJson(document)));
  return { agent: headOf(agent), document, fields: projectedJson(document) };
}

function headOf(agent: AgentDocument): AgentHead {
  const { triggers: _triggers, name: _name, description: _description, ...head } = agent;
  return { ...head, shownName: displayName(agent) };
}

function validationError(wanted: unknown): Error {
  const result = validateBody(wanted);
  const error = typeof result === 'object' && result !== null && 'error' in result ? result.error : undefined;
  return error instanceof Error ? error : invalidBody();
}
