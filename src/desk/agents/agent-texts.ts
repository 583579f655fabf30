import { isDeepStrictEqual } from 'node:util';
import { compiledOnce } from '../../core/compiled-once.ts';
import { invalidBody } from '../../core/errors.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { refuseLargeDocument, sizeOfJson } from '../../core/json/measure.ts';
import { parseJson } from '../../core/json/parse.ts';
import { compileValidator } from '../../http/validation.ts';
import { projectedJson } from '../../query/json-projection.ts';
import { metadataOf } from '../../recording/documents/own-documents.ts';
import type { McpServer } from '../mcp/schemas.ts';
import { withStates } from '../mcp/servers.ts';
import { contentOf, displayName, faultsOfBody } from './agent-document.ts';
import { patchedText } from './agent-patch.ts';
import type { AgentDocument } from './answer-schemas.ts';
import { AgentBody, type AgentPatch } from './schemas.ts';

/** An agent without its potentially long parts: triggers, and texts in several languages. */
export type AgentHead = Omit<AgentDocument, 'triggers' | 'name' | 'description'> & {
  /** The name in change entries and e-mails. */
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
  /** The replaced agent. */
  readonly before: AgentHead | undefined;
  /** The JSON text as stored and sent. */
  readonly document: string;
  /** The text of the jsonb column. */
  readonly fields: string;
}

const validateBody = compileValidator({ schema: AgentBody, method: 'PATCH', url: '', httpPart: 'body' });
const bodyCheck = compiledOnce(AgentBody);

/** Parses a stored agent. */
export const readAgentHead = threaded(import.meta.url, 'readAgentHead', (document: string) =>
  headOf(JSON.parse(document)),
);

/**
 * The agent with the content of a validated body, replacing `before`. Throws payload_too_large (contract 11), and
 * validation_violation for text that PostgreSQL cannot store.
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

/** The stored agent with the states of the compared tools; undefined if unchanged. `time` is in RFC 3339. */
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
 * Applies a patch to a stored agent and validates the result as the body of a PUT, returned as `text`. Throws
 * validation_violation and payload_too_large.
 */
export const patchedAgent = threaded(
  import.meta.url,
  'patchedAgent',
  (document: string, patchText: string): { text: string; body: BodyHead } => {
    const patch: AgentPatch = JSON.parse(patchText);
    const before: AgentDocument = JSON.parse(document);
    const text = patchedText(document, before, patch);
    const body: unknown = JSON.parse(text);
    const changedBody = withoutUnchanged(body, before);
    if (!bodyCheck().Check(changedBody)) throw validationError(changedBody);
    refuseReadOnly(changedBody, before);
    // Unchanged members were removed above.
    const hasTools = typeof body === 'object' && body !== null && 'nativeTools' in body;
    refuseFaults(before.id, {
      ...changedBody,
      nativeTools: changedBody.nativeTools ?? (hasTools ? before.nativeTools : []),
    });
    const { llmConfig, mcpServers, metadata } = changedBody;
    return { text, body: { llmConfig, mcpServers, metadata } };
  },
);

/** Earlier versions accepted triggers and tools that this one refuses. A patch of other members keeps them. */
function withoutUnchanged(body: unknown, before: AgentDocument): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const stored: ReadonlyMap<string, unknown> = new Map(Object.entries(before));
  return Object.fromEntries(
    Object.entries(body).filter(([key, value]) => !(keptMembers.has(key) && isDeepStrictEqual(value, stored.get(key)))),
  );
}

const keptMembers: ReadonlySet<string> = new Set(['triggers', 'nativeTools']);

/** A PUT ignores read-only members, because responses contain them. A patch may not change them. */
function refuseReadOnly({ disabledReason, metadata }: AgentBody, before: AgentDocument): void {
  const sent = {
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
  const changed = Object.entries(sent).filter(([field, value]) => value !== stored[field as keyof typeof stored]);
  if (changed.length > 0) throw invalidBody(...changed.map(([field]) => ({ field, message: 'is read-only' })));
}

/** Throws validation_violation for the faults that the schema cannot find. */
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

function validationError(body: unknown): Error {
  const result = validateBody(body);
  const error = typeof result === 'object' && result !== null && 'error' in result ? result.error : undefined;
  return error instanceof Error ? error : invalidBody();
}
