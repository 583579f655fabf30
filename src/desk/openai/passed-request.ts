// Requests that go out as they came. Long because it is one list of what may be in them.
import { createHash } from 'node:crypto';
import { AnnalsError } from '../../core/errors.ts';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { elementsOf, memberOf, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { JsonSplice } from '../../core/json/splice.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { decodedString } from '../../core/json/text.ts';
import type { InputBound } from '../../providers/call-ledger.ts';
import type { PassedOperation } from '../../providers/port.ts';
import { openaiLimits } from './limits.ts';
import { Members, refused } from './members.ts';
import type { OpenToolCall } from './messages.ts';

/** A validated request, ready to pass on. */
export interface PassedRequest {
  readonly stream: boolean;
  readonly user: string | undefined;
  readonly maxTokens: number | undefined;
  /** How many answers it asks for. */
  readonly answers: number;
  /** The distinct types of hosted tools, which are left out because they would bypass the quota and the records. */
  readonly leftOut: readonly string[];
  /** Members at the top level that Annals does not know. */
  readonly unknown: readonly string[];
  /** Upper bound of the input; undefined if unknown, because of a file or audio. */
  readonly inputBound: InputBound | undefined;
  /** Whether a member changes the price of tokens. */
  readonly isUnpriced: boolean;
  /** Whether the client did not ask for the figures of a stream. */
  readonly hidesUsage: boolean;
  /** What to send, with this cap of output tokens; undefined: with the client's own. */
  bytes(maxTokens: number | undefined): Uint8Array<ArrayBuffer>;
}

export interface PassedTarget {
  readonly operation: PassedOperation;
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
  /** Content parts by type, with the members that the shared token takes. */
  readonly parts: Readonly<Record<string, readonly string[]>>;
}

const formats: Readonly<Record<PassedOperation, Format>> = {
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
const opaque = new Set(['parameters', 'schema', 'metadata', 'client_metadata', 'logit_bias', 'input_schema']);

/** Members that are set or checked: written in another case some servers read them too. */
const judged = new Set([
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

/** Tools that the vendor runs, by the start of their type. */
const hostedTools =
  /^(?:web_search|file_search|code_interpreter|image_generation|mcp|computer|local_shell|shell|apply_patch|tool_search)/;
const clientTools: Readonly<Record<string, readonly string[]>> = {
  function: ['type', 'function', 'name', 'description', 'parameters', 'strict'],
  custom: ['type', 'custom', 'name', 'description', 'format'],
  namespace: ['type', 'name', 'description', 'tools'],
};

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
/** The JSON around texts is longer than what a vendor adds to them. */
const perCall = 64;

/** What the contents of a request have beside text. */
interface Found {
  images: number;
  /** Of images, files and audio. */
  dataBytes: number;
  files: number;
}

/**
 * The text of a request as a document. `value` is what it says. Throws validation_violation where readers could differ in
 * what that is: for a member twice in an object, and for half of a surrogate pair.
 */
export function readDocument(text: string, value: unknown): JsonNode {
  const document = parseJson(text);
  const { repeatedKey } = document.tape;
  if (repeatedKey !== -1) throw refused(shown(decodedString(document.tape, repeatedKey)), 'is given twice');
  if (/\\u[dD][89a-fA-F]/.test(text)) refuseHalfPairs(value);
  return document;
}

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
  checkNames(value);
  await rest();
  const body = members.plain();
  for (const name of Object.keys(body)) {
    if (refusedInBody.includes(name) && !isDefault(name, body[name])) {
      throw refused(name, 'is not supported: nothing is kept at the provider');
    }
    if (provider === 'self_hosted' && refusedByServers.test(folded(name))) throw refused(name, 'is not supported');
  }
  if (members.flag('store') === true) throw refused('store', 'must be false: nothing is kept at the provider');
  const voice = members.object('audio')?.get('voice');
  if (typeof voice === 'object')
    throw refused('audio.voice', 'must be the name of a voice: none is kept at the provider');
  const unknown = unknownIn(body, format, isShared);

  const found: Found = { images: 0, dataBytes: 0, files: 0 };
  const contents = new Contents(format, { isShared, isServer: provider === 'self_hosted', found });
  if (operation === 'responses') readInput(members, contents);
  else readMessages(members, contents);
  await rest();
  const splice = new JsonSplice(document).set(document, 'model', JSON.stringify(target.model));
  openToolCalls(document, splice, target.openToolCall);
  const leftOut = leaveOutTools(members, { document, splice, isShared });
  if (members.get('web_search_options') !== undefined) {
    removeMembers(document, splice, body, ['web_search_options']);
    leftOut.add('web_search');
  }
  splice.set(document, 'store', 'false');
  const stream = members.flag('stream') ?? false;
  const hidesUsage = operation === 'chat/completions' && askForUsage(members, { document, splice, stream, isShared });
  const user = members.name('user', openaiLimits.userCharacters);
  if (isShared) {
    removeMembers(document, splice, body, [...hints, ...Object.keys(defaults)]);
    for (const name of hashed) {
      const named = members.text(name);
      if (named !== undefined) splice.set(document, name, JSON.stringify(hashWith(target.tenant, named)));
    }
  }

  const cap = capOf(members, format);
  const answers = operation === 'chat/completions' ? (members.whole('n', isShared ? 1 : maxAnswers) ?? 1) : 1;
  const textBytes = splice.length - found.dataBytes;
  if (textBytes > openaiLimits.textBytes) {
    throw new AnnalsError(
      'payload_too_large',
      `The texts of a request must have at most ${openaiLimits.textBytes} bytes together.`,
    );
  }
  const isOlder = provider === 'self_hosted' && operation !== 'responses';
  const capName = isShared ? format.cap : (cap.name ?? (isOlder ? 'max_tokens' : format.cap));
  // The model of the shared token may not take the older name.
  if (isShared && cap.name !== undefined && cap.name !== capName) removeMembers(document, splice, body, [cap.name]);
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
function hasOtherPrice(members: Members): boolean {
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

/** Reads the content parts of messages and items. */
class Contents {
  readonly isShared: boolean;
  readonly #format: Format;
  readonly #isServer: boolean;
  readonly #found: Found;

  constructor(format: Format, options: { isShared: boolean; isServer: boolean; found: Found }) {
    this.#format = format;
    this.isShared = options.isShared;
    this.#isServer = options.isServer;
    this.#found = options.found;
  }

  /** Throws where a part is of an unknown type, or names what has to be fetched. */
  read(holder: Members, name: string): void {
    const content = holder.get(name);
    if (content === undefined || typeof content === 'string') return;
    if (!Array.isArray(content)) throw refused(holder.at(name), 'must be a string or a list of parts');
    for (const [place, value] of content.entries()) this.#part(new Members(value, holder.at(`${name}.${place}`)));
  }

  #part(part: Members): void {
    const type = part.neededText('type');
    const known = Object.hasOwn(this.#format.parts, type) ? this.#format.parts[type] : undefined;
    const isOfServers = this.#isServer && (type === 'video_url' || type === 'audio_url');
    if (known === undefined && !isOfServers) throw refused(part.at('type'), 'is not a known type of a content part');
    if (this.isShared && known !== undefined) part.refuseOthers(known);
    // Some servers read what is there, whatever the type.
    for (const [name, types] of Object.entries(typesOfData)) {
      if (part.get(name) !== undefined && !types.includes(type))
        throw refused(part.at(name), 'is of another type of part');
    }
    switch (type) {
      case 'image_url':
      case 'input_image':
        this.#image(part);
        break;
      case 'video_url':
      case 'audio_url':
        this.#found.files += 1;
        this.#data(part, type, 'url');
        break;
      case 'input_audio':
        this.#found.files += 1;
        this.#data(part, type, 'data');
        break;
      case 'file':
        this.#found.files += 1;
        this.#data(part, type, 'file_data');
        break;
      case 'input_file':
        this.#found.files += 1;
        this.#take(part, 'file_data', dataOrBase64);
        break;
    }
  }

  #image(part: Members): void {
    const image = part.get('image_url');
    this.#found.images += 1;
    if (typeof image === 'string' || part.get('type') === 'input_image') {
      if (image === undefined) throw refused(part.at('image_url'), 'is required');
      this.#take(part, 'image_url', imageUrl);
      return;
    }
    const named = part.object('image_url');
    if (named?.get('url') === undefined) throw refused(part.at('image_url.url'), 'is required');
    if (this.isShared) named.refuseOthers(['url', 'detail']);
    this.#take(named, 'url', imageUrl);
  }

  /** The member of an object in a part, or the text in its place. */
  #data(part: Members, name: string, inner: string): void {
    if (typeof part.get(name) === 'string') this.#take(part, name, dataOrBase64);
    else this.#take(part.object(name) ?? new Members({}, part.at(name)), inner, dataOrBase64);
  }

  #take(holder: Members, name: string, { pattern, must }: { pattern: RegExp; must: string }): void {
    const text = holder.neededText(name);
    if (!pattern.test(text)) throw refused(holder.at(name), must);
    this.#found.dataBytes += text.length;
  }
}

/** The types of parts that have data, by the member that has it. */
const typesOfData: Readonly<Record<string, readonly string[]>> = {
  image_url: ['image_url', 'input_image'],
  video_url: ['video_url'],
  audio_url: ['audio_url'],
  input_audio: ['input_audio'],
  file: ['file'],
  file_data: ['input_file'],
  url: [],
};

const imageUrl = { pattern: /^data:image\//, must: 'must be a data: URL of an image: the service fetches none' };
const dataOrBase64 = { pattern: /^(?:data:|[\w+/=\s-]*$)/, must: 'must be a data: URL or base64: nothing is fetched' };

/** Removes the tools that the vendor would run. Returns their types. */
function leaveOutTools(
  members: Members,
  { document, splice, isShared }: { document: JsonNode; splice: JsonSplice; isShared: boolean },
): Set<string> {
  const tools = (members.list('tools', openaiLimits.tools) ?? []).map(
    (tool, index) => new Members(tool, `tools.${index}`),
  );
  const isHosted = tools.map((tool) => isHostedTool(tool, isShared));
  const leftOut = new Set(tools.filter((_, index) => isHosted[index]).map((tool) => tool.neededText('type')));
  const hasNone = tools.length > 0 && isHosted.every(Boolean);
  checkChoice(members, hasNone);
  const node = memberOf(document, 'tools');
  if (hasNone) removeMembers(document, splice, members.plain(), ['tools', 'tool_choice', 'parallel_tool_calls']);
  else if (leftOut.size > 0 && node !== undefined) splice.remove(node, (index) => isHosted[index] === true);
  return leftOut;
}

/** Whether the vendor runs the tool. A namespace is a group of tools. */
function isHostedTool(tool: Members, isShared: boolean): boolean {
  const type = tool.neededText('type');
  const known = Object.hasOwn(clientTools, type) ? clientTools[type] : undefined;
  if (known === undefined) {
    if (!hostedTools.test(type) || !/^\w{1,64}$/.test(type))
      throw refused(tool.at('type'), 'is not a known type of a tool');
    return true;
  }
  if (isShared) {
    tool.refuseOthers(known);
    tool.object('function')?.refuseOthers(['name', 'description', 'parameters', 'strict']);
  }
  if (type !== 'namespace') return false;
  const inner = tool.list('tools', openaiLimits.tools) ?? [];
  return inner.map((one, index) => isHostedTool(new Members(one, tool.at(`tools.${index}`)), isShared)).some(Boolean);
}

/** Refuses a choice of a tool that is left out. */
function checkChoice(members: Members, hasNone: boolean): void {
  const choice = members.get('tool_choice');
  if (choice === undefined) return;
  if (typeof choice === 'string') members.one('tool_choice', ['auto', 'none', 'required']);
  else checkNamedChoice(new Members(choice, 'tool_choice'));
  if (hasNone && choice !== 'auto' && choice !== 'none') {
    throw refused('tool_choice', 'needs a tool that is not left out');
  }
}

function checkNamedChoice(choice: Members): void {
  if (choice.one('type', ['function', 'custom', 'allowed_tools']) !== 'allowed_tools') return;
  const holder = choice.object('allowed_tools') ?? choice;
  for (const [index, tool] of (holder.list('tools', openaiLimits.tools) ?? []).entries()) {
    new Members(tool, holder.at(`tools.${index}`)).one('type', ['function', 'custom']);
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

function removeMembers(
  document: JsonNode,
  splice: JsonSplice,
  body: Readonly<Record<string, unknown>>,
  names: readonly string[],
): void {
  for (const name of names) if (Object.hasOwn(body, name)) splice.removeMember(document, name);
}

/** The place of a value. Its text is only made for an error. */
interface Place {
  readonly holder: Place | undefined;
  readonly name: string | number;
}

function textOfPlace({ holder, name }: Place): string {
  const last = typeof name === 'string' ? shown(name) : String(name);
  return holder === undefined ? last : `${textOfPlace(holder)}.${last}`;
}

/** Refuses names of members that hold what is kept at the vendor, or that differ from a checked one by case alone. */
function checkNames(value: unknown, holder?: Place): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, member] of value.entries()) {
      if (typeof member === 'object') checkNames(member, { holder, name: index });
    }
    return;
  }
  for (const name of Object.keys(value)) {
    const member: unknown = Reflect.get(value, name);
    const plain = /^[a-z0-9_]*$/.test(name) ? name : folded(name);
    if (plain !== name && judged.has(plain)) {
      throw refused(textOfPlace({ holder, name }), `must be written as ${plain}`);
    }
    if (refusedAnywhere.has(name) && member !== null) {
      throw refused(
        textOfPlace({ holder, name }),
        'names what is kept elsewhere: nothing is fetched or kept at the provider',
      );
    }
    if (typeof member === 'object' && !opaque.has(name)) checkNames(member, { holder, name });
  }
}

/** A name without case. Some servers fold letters beyond ASCII too, such as the sign of Kelvin. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

function refuseHalfPairs(value: unknown, place?: Place): void {
  if (typeof value === 'string') checkPairs(value, place);
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, member] of value.entries()) refuseHalfPairs(member, { holder: place, name: index });
    return;
  }
  for (const name of Object.keys(value)) {
    const at = { holder: place, name };
    checkPairs(name, at);
    refuseHalfPairs(Reflect.get(value, name), at);
  }
}

function checkPairs(text: string, place: Place | undefined): void {
  if (text.isWellFormed()) return;
  throw refused(place === undefined ? '' : textOfPlace(place), 'must not have half of a surrogate pair');
}

/** A name of the client's for a message. */
function shown(name: string): string {
  return name.slice(0, 100).toWellFormed();
}

function hashWith(tenant: string, text: string): string {
  return createHash('sha256').update(`${tenant}\0${text}`).digest('hex');
}
