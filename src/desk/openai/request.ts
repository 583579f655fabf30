import { AnnalsError } from '../../core/errors.ts';
import {
  type JsonFormat,
  type Message,
  type ModelCall,
  reasoningEfforts,
  type Tool,
  type ToolCall,
  type UserPart,
} from '../../providers/port.ts';
import { Members, refused } from './members.ts';
import type { OpenToolCall } from './tool-call-ids.ts';

export const openaiLimits = {
  /** Of a request, images included. */
  bodyBytes: 16 * 1024 * 1024,
  /** Of all texts of a request together. */
  textBytes: 4 * 1024 * 1024,
  messages: 1_000,
  /** Of the input of a response. */
  items: 10_000,
  tools: 128,
  stops: 4,
  userCharacters: 200,
  modelCharacters: 200,
} as const;

/** A request of `POST /chat/completions`. */
export interface ChatRequest {
  readonly model: string;
  readonly user: string | undefined;
  readonly stream: boolean;
  /** Whether a stream tells its usage. */
  readonly includesUsage: boolean;
  readonly call: Pick<
    ModelCall,
    | 'messages'
    | 'tools'
    | 'toolChoice'
    | 'parallelToolCalls'
    | 'responseFormat'
    | 'reasoningEffort'
    | 'temperature'
    | 'topP'
    | 'stop'
  > & { readonly maxTokens: number | undefined };
}

const taken = [
  'model',
  'messages',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'stop',
  'stream',
  'stream_options',
  'reasoning_effort',
  'user',
];

const any = () => true;
const isZero = (value: unknown) => value === 0;
const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** Hints, which change nothing that a client may count on, and members at their defaults. */
const ignored: Readonly<Record<string, (value: unknown) => boolean>> = {
  seed: any,
  metadata: any,
  service_tier: any,
  prompt_cache_key: any,
  prompt_cache_retention: any,
  safety_identifier: any,
  verbosity: any,
  store: any,
  n: (value) => value === 1,
  frequency_penalty: isZero,
  presence_penalty: isZero,
  logit_bias: isEmpty,
  logprobs: (value) => value === false,
  top_logprobs: isZero,
  modalities: (value) => JSON.stringify(value) === '["text"]',
};

/** Reads a request. Throws validation_violation, which names the member, and payload_too_large. */
export function readChatRequest(body: unknown, openToolCall: OpenToolCall): ChatRequest {
  const members = new Members(body, '');
  members.refuseOthers(taken, ignored);
  const tools = (members.list('tools', openaiLimits.tools) ?? []).map((tool, index) =>
    toolOf(new Members(tool, members.at(`tools.${index}`))),
  );
  const streamOptions = members.object('stream_options');
  streamOptions?.refuseOthers(['include_usage'], { include_obfuscation: (value) => value === false });
  const stream = members.flag('stream') ?? false;
  if (streamOptions !== undefined && !stream) throw refused('stream_options', 'is only for streams');
  const user = members.name('user', openaiLimits.userCharacters);
  const maxTokens = members.whole('max_completion_tokens', 1_000_000) ?? members.whole('max_tokens', 1_000_000);
  const messages = messagesOf(members, openToolCall);
  refuseLongText({ messages, tools });
  return {
    model: members.neededText('model'),
    user,
    stream,
    includesUsage: streamOptions?.flag('include_usage') ?? false,
    call: {
      messages,
      tools,
      maxTokens,
      toolChoice: toolChoiceOf(members, tools),
      parallelToolCalls: tools.length === 0 ? undefined : members.flag('parallel_tool_calls'),
      responseFormat: formatOf(members.object('response_format')),
      reasoningEffort: members.one('reasoning_effort', reasoningEfforts),
      temperature: members.number('temperature', 0, 2),
      topP: members.number('top_p', 0, 1),
      stop: stopOf(members),
    },
  };
}

function toolOf(tool: Members): Tool {
  tool.one('type', ['function']);
  tool.refuseOthers(['type', 'function']);
  const described = tool.object('function');
  if (described === undefined) throw refused(tool.at('function'), 'is required');
  described.refuseOthers(['name', 'description', 'parameters', 'strict']);
  const name = described.neededText('name');
  if (!isToolName(name)) throw refused(described.at('name'), 'must match ^[a-zA-Z0-9_-]{1,64}$');
  return {
    name,
    description: described.text('description'),
    inputSchema: described.object('parameters')?.plain() ?? { type: 'object', properties: {} },
    strict: described.flag('strict'),
  };
}

function isToolName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(name);
}

function toolChoiceOf(members: Members, tools: readonly Tool[]): ModelCall['toolChoice'] {
  const choice = members.get('tool_choice');
  if (choice === undefined) return undefined;
  if (typeof choice === 'string') {
    const known = members.one('tool_choice', ['auto', 'none', 'required']);
    if (tools.length === 0 && known === 'required') throw refused('tool_choice', 'needs tools');
    return tools.length === 0 ? undefined : known;
  }
  const named = new Members(choice, 'tool_choice');
  named.one('type', ['function']);
  named.refuseOthers(['type', 'function']);
  const name = named.object('function')?.neededText('name');
  if (name === undefined || !tools.some((tool) => tool.name === name)) {
    throw refused('tool_choice.function.name', 'must be the name of one of the tools');
  }
  return { name };
}

function formatOf(format: Members | undefined): JsonFormat | undefined {
  const type = format?.one('type', ['text', 'json_object', 'json_schema']);
  if (format === undefined || type === 'text') return undefined;
  format.refuseOthers(['type', 'json_schema']);
  if (type === 'json_object') return {};
  const described = format.object('json_schema');
  if (type === undefined || described === undefined) throw refused(format.at('json_schema'), 'is required');
  described.refuseOthers(['name', 'description', 'schema', 'strict']);
  const schema = described.object('schema');
  if (schema === undefined) throw refused(described.at('schema'), 'is required');
  return {
    schema: schema.plain(),
    name: described.neededText('name'),
    description: described.text('description'),
    strict: described.flag('strict'),
  };
}

function stopOf(members: Members): readonly string[] | undefined {
  const stop = members.get('stop');
  if (stop === undefined) return undefined;
  const list = typeof stop === 'string' ? [stop] : members.list('stop', openaiLimits.stops);
  if (list === undefined || !list.every((one) => typeof one === 'string' && one !== '')) {
    throw refused('stop', `must be a string or a list of at most ${openaiLimits.stops} strings`);
  }
  return list.length === 0 ? undefined : list.map(String);
}

function messagesOf(members: Members, openToolCall: OpenToolCall): readonly Message[] {
  const list = members.list('messages', openaiLimits.messages);
  if (list === undefined || list.length === 0) throw refused('messages', 'must have at least one message');
  /** The names of the tools that the conversation has called, by the ids of the calls. */
  const called = new Map<string, string>();
  const messages: Message[] = [];
  for (const [index, value] of list.entries()) {
    const message = new Members(value, members.at(`messages.${index}`));
    const role = message.one('role', ['developer', 'system', 'user', 'assistant', 'tool']);
    if (role === undefined) throw refused(message.at('role'), 'is required');
    if (role === 'tool') {
      const result = resultOf(message, called, openToolCall);
      const last = messages.at(-1);
      // Vendors want the results of one answer together.
      if (last?.role === 'tool') messages[messages.length - 1] = { role, results: [...last.results, result] };
      else messages.push({ role, results: [result] });
    } else if (role === 'assistant') {
      messages.push(assistantOf(message, called, openToolCall));
    } else if (role === 'user') {
      message.refuseOthers(['role', 'content']);
      messages.push({ role, content: contentOf(message, userPart) });
    } else {
      message.refuseOthers(['role', 'content']);
      messages.push({ role: 'system', content: textOf(message) });
    }
  }
  return messages;
}

function assistantOf(message: Members, called: Map<string, string>, openToolCall: OpenToolCall): Message {
  // Clients send back what they got.
  message.refuseOthers(['role', 'content', 'tool_calls'], {
    annotations: isEmpty,
    refusal: (value) => value === '',
    audio: isEmpty,
  });
  const calls = (message.list('tool_calls', openaiLimits.tools) ?? []).map((value, index): ToolCall => {
    const call = new Members(value, message.at(`tool_calls.${index}`));
    call.one('type', ['function']);
    call.refuseOthers(['id', 'type', 'function', 'index']);
    const asked = call.object('function');
    if (asked === undefined) throw refused(call.at('function'), 'is required');
    asked.refuseOthers(['name', 'arguments']);
    const id = call.neededText('id');
    const name = asked.neededText('name');
    if (!isToolName(name)) throw refused(asked.at('name'), 'must match ^[a-zA-Z0-9_-]{1,64}$');
    called.set(id, name);
    const opened = openToolCall(id);
    if (opened === undefined) throw refused(call.at('id'), 'is no id that this service has given to this tenant');
    return { ...opened, name, input: asked.text('arguments') ?? '{}' };
  });
  const content = message.get('content') === undefined ? '' : textOf(message);
  if (content === '' && calls.length === 0 && message.get('content') === undefined) {
    throw refused(message.at('content'), 'is required where there are no tool_calls');
  }
  return { role: 'assistant', content, ...(calls.length === 0 ? {} : { toolCalls: calls }) };
}

function resultOf(message: Members, called: ReadonlyMap<string, string>, openToolCall: OpenToolCall) {
  message.refuseOthers(['role', 'content', 'tool_call_id']);
  const given = message.neededText('tool_call_id');
  const name = called.get(given);
  const id = openToolCall(given)?.id;
  if (name === undefined || id === undefined) {
    throw refused(message.at('tool_call_id'), 'must be the id of a tool call of an earlier message');
  }
  return { id, name, output: textOf(message) };
}

/** A content that is a text, or a list of texts. */
function textOf(message: Members): string {
  const content = contentOf(message, (part) => {
    const type = part.one('type', ['text', 'refusal']);
    if (type === undefined) throw refused(part.at('type'), 'is required');
    part.refuseOthers(['type', type]);
    return { type: 'text', text: part.neededText(type) };
  });
  return typeof content === 'string'
    ? content
    : content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function contentOf(message: Members, read: (part: Members) => UserPart): string | readonly UserPart[] {
  const content = message.get('content');
  if (content === undefined) throw refused(message.at('content'), 'is required');
  if (!Array.isArray(content)) return message.neededText('content');
  const parts = content.map((part, index) => read(new Members(part, message.at(`content.${index}`))));
  if (parts.length === 0) throw refused(message.at('content'), 'must not be empty');
  return parts;
}

function userPart(part: Members): UserPart {
  const type = part.one('type', ['text', 'image_url']);
  if (type === undefined) throw refused(part.at('type'), 'is required');
  part.refuseOthers(['type', type]);
  if (type === 'text') return { type, text: part.neededText('text') };
  const image = part.object('image_url');
  if (image === undefined) throw refused(part.at('image_url'), 'is required');
  image.refuseOthers(['url', 'detail']);
  const detail = image.one('detail', ['auto', 'low', 'high']);
  const url = image.neededText('url');
  const [, mediaType, data = ''] = /^data:(image\/(?:png|jpeg|webp|gif));base64,(.*)$/s.exec(url) ?? [];
  if (mediaType === undefined || !isBase64(data)) {
    throw refused(
      image.at('url'),
      'must be a data: URL with a PNG, JPEG, WebP or GIF in base64: the service fetches no images',
    );
  }
  return { type: 'image', mediaType, data, detail: detail === 'auto' ? undefined : detail };
}

/** Decoding passes over what is no base64, and comes out shorter. */
function isBase64(text: string): boolean {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return text !== '' && text.length % 4 === 0 && Buffer.from(text, 'base64').length === (text.length / 4) * 3 - padding;
}

function refuseLongText({ messages, tools }: { messages: readonly Message[]; tools: readonly Tool[] }): void {
  const withoutImages = messages.map((message) =>
    message.role === 'user' && typeof message.content !== 'string'
      ? { ...message, content: message.content.filter(({ type }) => type === 'text') }
      : message,
  );
  if (Buffer.byteLength(JSON.stringify([withoutImages, tools])) > openaiLimits.textBytes) {
    throw new AnnalsError(
      'payload_too_large',
      `The texts of a request must have at most ${openaiLimits.textBytes} bytes together.`,
    );
  }
}
