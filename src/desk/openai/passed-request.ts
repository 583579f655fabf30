// Requests that go out as they came. Long because it is one list of what may be in them.
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { elementsOf, memberOf, stringOf } from '../../core/json/members.ts';
import { JsonSplice } from '../../core/json/splice.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { checkNames, folded, hashWith, type NameRules, removeMembers, shown } from '../formats/document.ts';
import { Members, refused } from '../formats/members.ts';
import { checkTextBytes, type PassedRequest, perCall } from '../formats/passed-request.ts';
import { openaiLimits } from './limits.ts';
import type { OpenToolCall } from './messages.ts';
import { Contents, type Found, type PartTypes } from './passed-content.ts';
import { leaveOutTools } from './passed-tools.ts';

/** The operations of this format that answer a conversation, and whose requests are passed through. */
export type OpenaiOperation = 'chat/completions' | 'responses';

export interface PassedTarget {
  readonly operation: OpenaiOperation;
  readonly provider: 'openai' | 'self_hosted';
  /** The vendor's name of it. */
  readonly model: string;
  readonly tenant: string;
  /** The shared token takes the members that are known, and no others. */
  readonly isShared: boolean;
  readonly openToolCall: OpenToolCall;
}

/** The members of one operation. */
interface Format {
  /** Of the body, and passed on with every key. */
  readonly known: readonly string[];
  /** What only the tenant's own keys take. */
  readonly ownOnly: readonly string[];
  readonly cap: string;
  readonly parts: PartTypes;
}

const formats: Readonly<Record<OpenaiOperation, Format>> = {
  'chat/completions': {
    known: [
      ...['model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'max_tokens'],
      ...['max_completion_tokens', 'temperature', 'top_p', 'stop', 'stream', 'stream_options', 'reasoning_effort'],
      ...['user', 'safety_identifier', 'prompt_cache_key', 'store'],
    ],
    ownOnly: [
      ...['n', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'modalities'],
      ...['audio', 'functions', 'function_call', 'web_search_options', 'prompt_cache_options', 'moderation'],
    ],
    cap: 'max_completion_tokens',
    parts: {
      text: ['type', 'text'],
      refusal: ['type', 'refusal'],
      image_url: ['type', 'image_url'],
      input_audio: ['type', 'input_audio'],
      file: ['type', 'file'],
    },
  },
  responses: {
    known: [
      ...['model', 'input', 'instructions', 'max_output_tokens', 'temperature', 'top_p', 'tools', 'tool_choice'],
      ...['parallel_tool_calls', 'text', 'reasoning', 'include', 'truncation', 'stream', 'stream_options', 'user'],
      ...['safety_identifier', 'prompt_cache_key', 'store'],
    ],
    ownOnly: ['top_logprobs', 'max_tool_calls', 'context_management', 'prompt_cache_options', 'moderation'],
    cap: 'max_output_tokens',
    parts: {
      input_text: ['type', 'text'],
      output_text: ['type', 'text', 'annotations', 'logprobs'],
      refusal: ['type', 'refusal'],
      summary_text: ['type', 'text'],
      reasoning_text: ['type', 'text'],
      input_image: ['type', 'image_url', 'detail'],
      input_file: ['type', 'filename', 'file_data'],
      input_audio: ['type', 'input_audio'],
    },
  },
};

/** What the shared token does not pass on. */
const hints = ['seed', 'metadata', 'service_tier', 'prompt_cache_retention', 'verbosity', 'client_metadata'];

/** At these values a member says nothing. */
const defaults: Readonly<Record<string, string>> = {
  background: 'false',
  n: '1',
  frequency_penalty: '0',
  presence_penalty: '0',
  logit_bias: '{}',
  logprobs: 'false',
  top_logprobs: '0',
  modalities: '["text"]',
};

/** Texts that go to the vendor as a hash with the tenant where tenants share a key. */
const hashed = ['user', 'safety_identifier', 'prompt_cache_key'];

/** Members of the body that no key takes: they name what is kept at the vendor, or cost beside the cap. */
const refusedInBody = ['previous_response_id', 'conversation', 'prompt', 'background', 'prediction'];
/** Members anywhere that name what is kept at the vendor. */
const refusedAnywhere: ReadonlySet<string> = new Set([
  ...['file_id', 'file_ids', 'file_url', 'container', 'container_id', 'vector_store_id', 'vector_store_ids'],
  ...['previous_response_id', 'comparison_response_id', 'item_reference', 'approval_request_id', 'connector_id'],
  ...['tunnel_id', 'skill_id'],
]);
/** Members of a server's body that would run a template, reach other servers or load files there. */
const refusedByServers = /^(?:kv_transfer_params|bootstrap_.*|chat_template|mm_processor_kwargs|lora_.*)$/;

/** Members whose names are the client's own. */
const opaque: ReadonlySet<string> = new Set([
  'parameters',
  'schema',
  'metadata',
  'client_metadata',
  'logit_bias',
  'input_schema',
]);

/** Members that are set or checked: written in another case some servers read them too. */
const judged: ReadonlySet<string> = new Set([
  ...Object.values(formats).flatMap(({ known, ownOnly }) => [...known, ...ownOnly]),
  ...[...hints, ...refusedInBody, ...refusedAnywhere, 'include_usage', 'role', 'content', 'type', 'image_url', 'url'],
  ...[
    'file',
    'file_data',
    'input_audio',
    'data',
    'audio',
    'video_url',
    'audio_url',
    'tool_calls',
    'output',
    'function',
  ],
]);

export const nameRules: NameRules = { refused: refusedAnywhere, judged, opaque };

/** Items of `input` by type, with the members that the shared token takes. */
const items: Readonly<Record<string, readonly string[]>> = {
  message: ['type', 'role', 'content', 'id', 'status', 'phase'],
  function_call: ['type', 'id', 'call_id', 'name', 'arguments', 'status', 'namespace'],
  function_call_output: ['type', 'id', 'call_id', 'output', 'status'],
  custom_tool_call: ['type', 'id', 'call_id', 'name', 'input', 'status', 'namespace'],
  custom_tool_call_output: ['type', 'id', 'call_id', 'output', 'status'],
  reasoning: ['type', 'id', 'summary', 'content', 'encrypted_content', 'status'],
  compaction: ['type', 'id', 'encrypted_content'],
};

const maxTokens = 1_000_000;
const maxAnswers = 8;

/** Reads a request. Throws validation_violation naming the member, and payload_too_large. */
export async function readPassedRequest(
  document: JsonNode,
  value: unknown,
  target: PassedTarget,
): Promise<PassedRequest> {
  const slice = new TimeSlice();
  const rest = async () => {
    if (slice.isDue) await slice.rest();
  };
  const { operation, isShared, provider } = target;
  const format = formats[operation];
  const members = new Members(value, '');
  checkNames(value, nameRules);
  await rest();
  const body = members.plain();
  refuseMembers(members, provider);
  const voice = members.object('audio')?.get('voice');
  if (typeof voice === 'object')
    throw refused('audio.voice', 'must be the name of a voice: none is kept at the provider');
  const unknown = unknownIn(body, format, isShared);

  const found: Found = { images: 0, dataBytes: 0, files: 0 };
  const contents = new Contents(format.parts, { isShared, isServer: provider === 'self_hosted', found });
  if (operation === 'responses') readInput(members, contents);
  else readMessages(members, contents);
  await rest();
  const splice = new JsonSplice(document).set(document, 'model', JSON.stringify(target.model));
  openToolCalls(document, splice, target.openToolCall);
  const leftOut = leaveOutTools(members, { document, splice, isShared });
  if (members.get('web_search_options') !== undefined) {
    removeMembers(document, splice, ['web_search_options']);
    leftOut.add('web_search');
  }
  splice.set(document, 'store', 'false');
  const stream = members.flag('stream') ?? false;
  const hidesUsage = operation === 'chat/completions' && askForUsage(members, { document, splice, stream, isShared });
  const user = members.name('user', openaiLimits.userCharacters);
  if (isShared) {
    removeMembers(document, splice, [...hints, ...Object.keys(defaults)]);
    for (const name of hashed) {
      const named = members.text(name);
      if (named !== undefined) splice.set(document, name, JSON.stringify(hashWith(target.tenant, named)));
    }
  }

  const cap = capOf(members, format);
  const answers = operation === 'chat/completions' ? (members.whole('n', isShared ? 1 : maxAnswers) ?? 1) : 1;
  const textBytes = splice.length - found.dataBytes;
  checkTextBytes(textBytes);
  const isOlder = provider === 'self_hosted' && operation !== 'responses';
  const capName = isShared ? format.cap : (cap.name ?? (isOlder ? 'max_tokens' : format.cap));
  // The model of the shared token may not take the older name.
  if (isShared && cap.name !== undefined && cap.name !== capName) removeMembers(document, splice, [cap.name]);
  return {
    stream,
    user,
    maxTokens: cap.tokens,
    answers,
    leftOut: [...leftOut],
    unknown,
    inputBound: found.files > 0 ? undefined : { tokens: textBytes + perCall, images: found.images },
    isUnpriced: provider === 'openai' && hasOtherPrice(members),
    hidesUsage,
    bytes(tokens) {
      if (tokens !== undefined) splice.set(document, capName, String(tokens));
      return splice.bytes();
    },
  };
}

/** Refuses members of the body that no key takes. */
export function refuseMembers(members: Members, provider: 'openai' | 'self_hosted'): void {
  for (const [name, value] of Object.entries(members.plain())) {
    if (refusedInBody.includes(name) && !isDefault(name, value)) {
      throw refused(name, 'is not supported: nothing is kept at the provider');
    }
    if (provider === 'self_hosted' && refusedByServers.test(folded(name))) throw refused(name, 'is not supported');
  }
  if (members.flag('store') === true) throw refused('store', 'must be false: nothing is kept at the provider');
}

/** Refuses members that the shared token does not take. Returns those that Annals does not know. */
function unknownIn(body: Readonly<Record<string, unknown>>, format: Format, isShared: boolean): string[] {
  const known = [...format.known, ...hints, ...refusedInBody];
  const unknown = Object.keys(body).filter((name) => !known.includes(name) && !isDefault(name, body[name]));
  if (!isShared) return unknown.filter((name) => !format.ownOnly.includes(name)).map(shown);
  const [first] = unknown;
  if (first !== undefined) throw refused(shown(first), 'is not supported with the shared token');
  return [];
}

function isDefault(name: string, value: unknown): boolean {
  return value === null || (Object.hasOwn(defaults, name) && JSON.stringify(value) === defaults[name]);
}

function capOf(members: Members, { cap }: Format): { name: string | undefined; tokens: number | undefined } {
  const tokens = members.whole(cap, maxTokens);
  const older = cap === 'max_completion_tokens' ? members.whole('max_tokens', maxTokens) : undefined;
  if (tokens !== undefined && older !== undefined) {
    throw refused('max_tokens', 'is the older name of max_completion_tokens: send one of them');
  }
  return { name: tokens !== undefined ? cap : older === undefined ? undefined : 'max_tokens', tokens: tokens ?? older };
}

/** Whether tokens may have another price than those of plain text at the vendor's usual speed. */
export function hasOtherPrice(members: Members): boolean {
  const tier = members.get('service_tier');
  const kinds = JSON.stringify(members.get('modalities') ?? []);
  return (
    (tier !== undefined && tier !== 'auto' && tier !== 'default') ||
    (kinds !== '[]' && kinds !== '["text"]') ||
    members.get('audio') !== undefined
  );
}

/** Makes a stream tell its figures. Returns whether the client did not ask for them. */
function askForUsage(
  members: Members,
  {
    document,
    splice,
    stream,
    isShared,
  }: { document: JsonNode; splice: JsonSplice; stream: boolean; isShared: boolean },
): boolean {
  const options = members.object('stream_options');
  if (options !== undefined && !stream) throw refused('stream_options', 'is only for streams');
  if (isShared) options?.refuseOthers(['include_usage', 'include_obfuscation']);
  if (!stream) return false;
  const sent = memberOf(document, 'stream_options');
  if (options === undefined || sent === undefined) splice.set(document, 'stream_options', '{"include_usage":true}');
  else splice.set(sent, 'include_usage', 'true');
  return options?.flag('include_usage') !== true;
}

function readMessages(members: Members, contents: Contents): void {
  const messages = members.list('messages', openaiLimits.messages);
  if (messages === undefined || messages.length === 0) throw refused('messages', 'must have at least one message');
  for (const [index, value] of messages.entries()) {
    const message = new Members(value, `messages.${index}`);
    message.neededText('role');
    if (contents.isShared) {
      message.one('role', ['developer', 'system', 'user', 'assistant', 'tool']);
      message.refuseOthers(['role', 'content', 'name', 'refusal', 'tool_calls', 'tool_call_id', 'reasoning_content'], {
        annotations: isEmptyList,
      });
    }
    if (message.object('audio')?.get('id') !== undefined) {
      throw refused(message.at('audio.id'), 'names what is kept at the provider: nothing is');
    }
    contents.read(message, 'content');
    for (const [place, call] of (message.list('tool_calls', openaiLimits.tools) ?? []).entries()) {
      new Members(call, message.at(`tool_calls.${place}`)).one('type', ['function', 'custom']);
    }
  }
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function readInput(members: Members, contents: Contents): void {
  members.text('instructions');
  const input = members.get('input');
  if (input === undefined) throw refused('input', 'is required');
  if (typeof input === 'string') return;
  if (!Array.isArray(input)) throw refused('input', 'must be a string or a list');
  for (const [index, value] of (members.list('input', openaiLimits.items) ?? []).entries()) {
    const item = new Members(value, `input.${index}`);
    // Without a type it is a message, or else a reference.
    const type = item.get('type') ?? (item.get('role') === undefined ? 'item_reference' : 'message');
    if (type === 'item_reference') throw refused(item.at('type'), 'names what is kept at the provider: nothing is');
    const known = typeof type === 'string' && Object.hasOwn(items, type) ? items[type] : undefined;
    if (known === undefined) {
      throw refused(item.at('type'), 'is not supported: the items of tools that the provider runs cannot be sent');
    }
    if (contents.isShared) item.refuseOthers(known);
    for (const name of ['content', 'output', 'summary']) contents.read(item, name);
  }
}

/** Puts the vendor's ids back into the ids that another provider's answers gave the client. */
function openToolCalls(document: JsonNode, splice: JsonSplice, open: OpenToolCall): void {
  const messages = memberOf(document, 'messages');
  for (const [index, message] of (messages === undefined ? [] : elementsOf(messages)).entries()) {
    const calls = memberOf(message, 'tool_calls');
    const places: [string, JsonNode | undefined][] = [
      ...(calls === undefined ? [] : elementsOf(calls)).map((call, place): [string, JsonNode | undefined] => [
        `tool_calls.${place}.id`,
        memberOf(call, 'id'),
      ]),
      ['tool_call_id', memberOf(message, 'tool_call_id')],
    ];
    for (const [place, node] of places) {
      const id = stringOf(node);
      if (id === undefined || node === undefined) continue;
      const opened = open(id);
      if (opened === undefined) {
        throw refused(`messages.${index}.${place}`, 'was not issued by this service to this tenant');
      }
      if (opened.id !== id) splice.replace(node, JSON.stringify(opened.id));
    }
  }
}
