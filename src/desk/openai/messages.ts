import { parseObject } from '../../core/json/parse.ts';
import type { Sealer } from '../../core/sealing.ts';
import { isEmpty as isEmptyMessage, partsOf, textPartsOf } from '../../providers/adapter.ts';
import { memberOf, parsed } from '../../providers/members.ts';
import type {
  CacheControl,
  Message,
  ProviderName,
  Text,
  TextPart,
  ToolCall,
  ToolResult,
  UserPart,
} from '../../providers/port.ts';
import { Members, refused } from '../formats/members.ts';
import type { CacheControls } from './cache-control.ts';
import { openaiLimits } from './limits.ts';

export const isEmpty = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

const isText = (value: unknown) => typeof value === 'string';

/** What the messages of a request are read with. */
interface Reading {
  readonly openToolCall: OpenToolCall;
  readonly caches: CacheControls;
}

/** The messages of a conversation with another provider. Throws the error for the client. */
export function messagesOf(members: Members, reading: Reading): readonly Message[] {
  const list = members.list('messages', openaiLimits.messages);
  if (list === undefined || list.length === 0) throw refused('messages', 'must have at least one message');
  /** The names of the called tools, by call id. */
  const called = new Map<string, string>();
  const messages: Message[] = [];
  for (const [index, value] of list.entries()) {
    const message = new Members(value, members.at(`messages.${index}`));
    const role = message.one('role', ['developer', 'system', 'user', 'assistant', 'tool']);
    if (role === undefined) throw refused(message.at('role'), 'is required');
    // Agent loops name the speaker. The providers' packages drop it.
    message.text('name');
    if (role === 'tool') {
      const result = resultOf(message, called, reading);
      const last = messages.at(-1);
      // Vendors require the results of one answer together.
      if (last?.role === 'tool') messages[messages.length - 1] = { role, results: [...last.results, result] };
      else messages.push({ role, results: [result] });
    } else if (role === 'assistant') {
      messages.push(assistantOf(message, called, reading));
    } else if (role === 'user') {
      message.refuseOthers(['role', 'content', 'name', 'cache_control']);
      const content = contentOf(message, (part) => userPart(part, reading));
      const cache = reading.caches.of(message);
      messages.push({ role, content: cache === undefined ? content : withCache(partsOf(content), cache, message) });
    } else {
      message.refuseOthers(['role', 'content', 'name', 'cache_control']);
      const parts = textPartsOf(cachedTexts(textOf(message, reading), message, reading));
      messages.push(
        ...parts.map(({ text, cache }) => ({ role: 'system' as const, content: text, ...(cache && { cache }) })),
      );
    }
  }
  const last = messages.at(-1);
  const hasNothing = messages.every(isEmptyMessage);
  if (last !== undefined && isEmptyMessage(last) && (hasNothing || last.role === 'user')) {
    throw refused(members.at(`messages.${list.length - 1}.content`), 'must not be empty');
  }
  return messages;
}

function assistantOf(message: Members, called: Map<string, string>, reading: Reading): Message {
  // Clients send back what they received.
  message.refuseOthers(['role', 'content', 'name', 'refusal', 'tool_calls', 'cache_control'], {
    reasoning_content: isText,
    annotations: isEmpty,
    audio: isEmpty,
  });
  const refusal = message.text('refusal') ?? '';
  const said = message.get('content') === undefined ? '' : textOf(message, reading);
  const calls = (message.list('tool_calls', openaiLimits.tools) ?? []).map((value, index): ToolCall => {
    const call = new Members(value, message.at(`tool_calls.${index}`));
    call.one('type', ['function']);
    call.refuseOthers(['id', 'type', 'function', 'index', 'cache_control']);
    const fn = call.object('function');
    if (fn === undefined) throw refused(call.at('function'), 'is required');
    fn.refuseOthers(['name', 'arguments']);
    const id = call.neededText('id');
    const name = fn.neededText('name');
    if (!isToolName(name)) throw refused(fn.at('name'), 'must match ^[a-zA-Z0-9_-]{1,64}$');
    called.set(id, name);
    const opened = reading.openToolCall(id);
    if (opened === undefined) throw refused(call.at('id'), 'was not issued by this service to this tenant');
    // A call without arguments may have an empty text.
    const input = fn.text('arguments') || '{}';
    if (parseObject(input) === undefined) {
      throw refused(fn.at('arguments'), 'must be the text of a JSON object');
    }
    return { ...opened, name, input, ...reading.caches.in(call) };
  });
  const content = refusal === '' ? said : [...textPartsOf(said), { type: 'text' as const, text: refusal }];
  if (content === '' && calls.length === 0 && message.get('content') === undefined) {
    throw refused(message.at('content'), 'is required where there are no tool_calls');
  }
  if (calls.length === 0) return { role: 'assistant', content: cachedTexts(content, message, reading) };
  const cache = reading.caches.of(message);
  return { role: 'assistant', content, toolCalls: cache === undefined ? calls : withCache(calls, cache, message) };
}

function cachedTexts(content: Text, message: Members, { caches }: Reading): Text {
  const cache = caches.of(message);
  return cache === undefined ? content : withCache(textPartsOf(content), cache, message);
}

/** The parts of a message, of which the last has the cache control of the message. */
function withCache<Part extends { cache?: CacheControl }>(
  parts: readonly Part[],
  cache: CacheControl,
  message: Members,
): readonly Part[] {
  const [last] = parts.slice(-1);
  const place = message.at('cache_control');
  if (last === undefined || ('text' in last && last.text === '')) throw refused(place, 'must not be of an empty text');
  if (last.cache !== undefined) throw refused(place, 'is also in the last part of the message');
  return [...parts.slice(0, -1), { ...last, cache }];
}

function resultOf(message: Members, called: ReadonlyMap<string, string>, reading: Reading): ToolResult {
  message.refuseOthers(['role', 'content', 'name', 'tool_call_id', 'cache_control']);
  const callId = message.neededText('tool_call_id');
  const name = called.get(callId);
  const id = reading.openToolCall(callId)?.id;
  if (name === undefined || id === undefined) {
    throw refused(message.at('tool_call_id'), 'must be the id of a tool call of an earlier message');
  }
  const output = textOf(message, reading);
  const cached = textPartsOf(output).findLast((part) => part.cache !== undefined);
  const cache = reading.caches.of(message) ?? cached?.cache;
  return { id, name, output, ...(cache && { cache }) };
}

/** A text, or a list of texts. */
function textOf(message: Members, reading: Reading): Text {
  return contentOf(message, (part) => {
    const type = part.one('type', ['text', 'refusal']);
    if (type === undefined) throw refused(part.at('type'), 'is required');
    return textPart(part, type, reading);
  });
}

/** The vendor caches no empty text. */
function textPart(part: Members, member: 'text' | 'refusal', { caches }: Reading): TextPart {
  part.refuseOthers(['type', member, 'cache_control']);
  const text = part.neededText(member);
  const cache = caches.of(part);
  if (cache !== undefined && text === '') throw refused(part.at('cache_control'), 'must not be of an empty text');
  return { type: 'text', text, ...(cache && { cache }) };
}

function contentOf<Part>(message: Members, read: (part: Members) => Part): string | readonly Part[] {
  const content = message.get('content');
  if (content === undefined) throw refused(message.at('content'), 'is required');
  if (!Array.isArray(content)) return message.neededText('content');
  const parts = content.map((part, index) => read(new Members(part, message.at(`content.${index}`))));
  if (parts.length === 0) throw refused(message.at('content'), 'must not be empty');
  return parts;
}

function userPart(part: Members, reading: Reading): UserPart {
  const type = part.one('type', ['text', 'image_url']);
  if (type === undefined) throw refused(part.at('type'), 'is required');
  if (type === 'text') return textPart(part, type, reading);
  part.refuseOthers(['type', type, 'cache_control']);
  const image = part.object('image_url');
  if (image === undefined) throw refused(part.at('image_url'), 'is required');
  image.refuseOthers(['url', 'detail']);
  const detail = image.one('detail', ['auto', 'low', 'high']);
  if (detail !== undefined && detail !== 'auto') {
    throw refused(image.at('detail'), 'is not taken by models of this provider');
  }
  const url = image.neededText('url');
  const [, mediaType, data = ''] = /^data:(image\/(?:png|jpeg|webp|gif));base64,(.*)$/s.exec(url) ?? [];
  if (mediaType === undefined || !isBase64(data)) {
    throw refused(
      image.at('url'),
      'must be a data: URL with a PNG, JPEG, WebP or GIF in base64: the service fetches no images',
    );
  }
  return { type: 'image', mediaType, data, ...reading.caches.in(part) };
}

/** Decoding skips invalid characters, which makes the result shorter. */
function isBase64(text: string): boolean {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return text !== '' && text.length % 4 === 0 && Buffer.from(text, 'base64').length === (text.length / 4) * 3 - padding;
}

export function isToolName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(name);
}

/** The vendor's id of a tool call, with its signature if the same provider is called. Undefined for a malformed id. */
export type OpenToolCall = (id: string) => Pick<ToolCall, 'id' | 'signature'> | undefined;

const prefix = 'call_sealed_';

/**
 * Carries the signatures of reasoning, sealed, in the ids of tool calls: clients of this format keep nothing else, and
 * the vendor requires them back unchanged. An id without a signature is the vendor's own.
 */
export function sealToolCallId(
  sealer: Sealer,
  { tenant, provider }: { tenant: string; provider: ProviderName },
  { id, signature }: Pick<ToolCall, 'id' | 'signature'>,
): string {
  if (signature === undefined) return id;
  const sealed = sealer.seal(Buffer.from(JSON.stringify({ id, provider, signature })), purposeOf(tenant));
  return prefix + Buffer.from(sealed).toString('base64url');
}

/** `provider` is the one called now. Another vendor's signature is dropped. */
export function toolCallOpener(
  sealer: Sealer,
  { tenant, provider }: { tenant: string; provider: ProviderName },
): OpenToolCall {
  return (text) => {
    if (!text.startsWith(prefix)) return { id: text };
    const sealed = Buffer.from(text.slice(prefix.length), 'base64url');
    if (prefix + sealed.toString('base64url') !== text) return undefined;
    const opened = sealer.open(sealed, purposeOf(tenant));
    const content = opened && parsed(Buffer.from(opened).toString('utf8'));
    const id = memberOf(content, 'id');
    const signature = memberOf(content, 'signature');
    if (typeof id !== 'string') return undefined;
    const isOwn = memberOf(content, 'provider') === provider && typeof signature === 'string';
    return isOwn ? { id, signature } : { id };
  };
}

/** A tenant's name contains no blank. */
function purposeOf(tenant: string): string {
  return `tool call ${tenant}`;
}
