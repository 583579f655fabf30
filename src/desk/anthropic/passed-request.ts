import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { JsonSplice } from '../../core/json/splice.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { memberOf } from '../../providers/members.ts';
import { checkNames, type NameRules, shown } from '../formats/document.ts';
import { Members, refused } from '../formats/members.ts';
import { checkTextBytes, type PassedRequest, perCall } from '../formats/passed-request.ts';
import { anthropicLimits } from './limits.ts';
import { type Found, readContents } from './passed-content.ts';
import { readTool } from './passed-tools.ts';

/** The operations of this format whose requests are passed through. */
export type AnthropicOperation = 'messages' | 'messages/count_tokens';

/** Members of the body that Annals knows. */
const known = new Set([
  ...['model', 'messages', 'system', 'max_tokens', 'stream', 'tools', 'tool_choice', 'temperature', 'top_p', 'top_k'],
  ...['stop_sequences', 'metadata', 'thinking', 'cache_control', 'context_management', 'output_config'],
  ...['output_format', 'service_tier', 'speed', 'inference_geo', 'compaction', 'diagnostics'],
]);

/** Members of the body that no request has: they name what is kept elsewhere, another model, or who pays. */
const refusedInBody: Readonly<Record<string, string>> = {
  mcp_servers: 'is not supported: the provider would call them beside the records',
  thread: 'is not supported: nothing is kept at the provider',
  fallbacks: 'is not supported: one call is of one model',
  fallback_credit_token: 'is not supported: one call is of one model',
  billing_policy: 'is not supported',
  betas: 'is not supported in the body: send the header anthropic-beta',
  anthropic_beta: 'is not supported in the body: send the header anthropic-beta',
  anthropic_version: 'is not supported in the body: send the header anthropic-version',
};

/** Members anywhere that name what is kept at the vendor. */
const refusedAnywhere: ReadonlySet<string> = new Set([
  ...['container', 'container_id', 'file_id', 'file_ids', 'document_ids', 'skill_id', 'skills', 'previous_message_id'],
  ...['user_profile_id', 'workspace_id', 'tool_id'],
]);

const nameRules: NameRules = {
  refused: refusedAnywhere,
  judged: new Set([
    ...[...known, ...Object.keys(refusedInBody), ...refusedAnywhere, 'role', 'content', 'type', 'source', 'data'],
    ...['url', 'tool', 'definition', 'tool_changes', 'user_id', 'ttl', 'edits', 'format'],
  ]),
  opaque: new Set(['input', 'input_schema', 'input_examples', 'schema']),
};

const maxTokens = 1_000_000;

/** Reads a request. Throws validation_violation naming the member, and payload_too_large. */
export async function readPassedRequest(
  document: JsonNode,
  value: unknown,
  { operation, model }: { readonly operation: AnthropicOperation; readonly model: string },
): Promise<PassedRequest> {
  const slice = new TimeSlice();
  const rest = async () => {
    if (slice.isDue) await slice.rest();
  };
  const members = new Members(value, '');
  checkNames(value, nameRules);
  await rest();
  const body = members.plain();
  for (const [name, reason] of Object.entries(refusedInBody)) {
    if (members.get(name) !== undefined) throw refused(name, reason);
  }
  const isCount = operation === 'messages/count_tokens';
  const cap = capOf(members, isCount);
  const found: Found = { images: 0, dataBytes: 0, unbounded: 0, references: 0, largestTool: 0 };
  readTools(members, found);
  readContents(members, found);
  await rest();
  if (isCompacted(members)) found.unbounded += 1;
  const lifetimes = addLifetimes(value, new Set());
  const splice = new JsonSplice(document);
  // Most clients name the model as the vendor does: its bytes stay.
  if (members.get('model') !== model) splice.set(document, 'model', JSON.stringify(model));
  const textBytes = splice.length - found.dataBytes;
  checkTextBytes(textBytes);
  const bound = { tokens: textBytes + perCall + found.references * found.largestTool, images: found.images };
  return {
    stream: !isCount && (members.flag('stream') ?? false),
    user: undefined,
    metadataUser: metadataUserOf(members),
    maxTokens: cap,
    answers: 1,
    leftOut: [],
    unknown: Object.keys(body)
      .filter((name) => body[name] !== null && !known.has(name))
      .map(shown),
    inputBound: found.unbounded > 0 ? undefined : bound,
    isUnpriced: hasOtherPrice(members) || lifetimes.difference(knownLifetimes).size > 0,
    mayCacheForHour: lifetimes.has('1h'),
    hidesUsage: false,
    bytes(tokens) {
      if (tokens !== undefined && tokens !== cap) splice.set(document, 'max_tokens', String(tokens));
      return splice.bytes();
    },
  };
}

/** What `metadata` says of who uses the program: its first characters, without NUL, which databases do not store. */
function metadataUserOf(members: Members): string | undefined {
  const user = members.object('metadata')?.text('user_id');
  return user?.slice(0, anthropicLimits.userCharacters).toWellFormed().replaceAll('\0', '\ufffd');
}

function capOf(members: Members, isCount: boolean): number | undefined {
  if (isCount) return undefined;
  // 0 writes to the cache alone.
  if (members.get('max_tokens') === 0) return 0;
  const cap = members.whole('max_tokens', maxTokens);
  if (cap === undefined) throw refused('max_tokens', 'is required');
  return cap;
}

function readTools(members: Members, found: Found): void {
  for (const [index, value] of (members.list('tools', anthropicLimits.tools) ?? []).entries()) {
    readTool(new Members(value, `tools.${index}`), found);
  }
}

/** Whether the vendor may sum the conversation up, which reads it again. */
function isCompacted(members: Members): boolean {
  const edits = members.object('context_management')?.list('edits', anthropicLimits.tools) ?? [];
  const types = edits.map((edit, index) => new Members(edit, `context_management.edits.${index}`).text('type') ?? '');
  return members.get('compaction') !== undefined || types.some((type) => !type.startsWith('clear_'));
}

/** Whether tokens may have another price than the usual one. */
function hasOtherPrice(members: Members): boolean {
  const usual: Readonly<Record<string, readonly unknown[]>> = {
    speed: ['standard'],
    service_tier: ['auto', 'standard_only'],
    inference_geo: ['global'],
  };
  return Object.entries(usual).some(([name, values]) => {
    const value = members.get(name);
    return value !== undefined && !values.includes(value);
  });
}

const knownLifetimes: ReadonlySet<unknown> = new Set(['5m', '1h']);

/** Adds how long what is cached is kept, which decides its price. */
function addLifetimes(value: unknown, found: Set<unknown>): Set<unknown> {
  if (typeof value !== 'object' || value === null) return found;
  for (const [name, member] of Object.entries(value)) {
    if (name === 'cache_control') found.add(memberOf(member, 'ttl') ?? '5m');
    else if (!nameRules.opaque.has(name)) addLifetimes(member, found);
  }
  return found;
}
