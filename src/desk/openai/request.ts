import { AnnalsError } from '../../core/errors.ts';
import {
  type JsonFormat,
  type Message,
  type ModelCall,
  type ProviderName,
  reasoningEfforts,
  type Tool,
} from '../../providers/port.ts';
import { Members, refused } from '../formats/members.ts';
import { CacheControls } from './cache-control.ts';
import { openaiLimits } from './limits.ts';
import { isEmpty, isToolName, messagesOf, type OpenToolCall } from './messages.ts';

/** A request of `POST /chat/completions`. */
export interface ChatRequest {
  readonly model: string;
  readonly user: string | undefined;
  readonly stream: boolean;
  /** Whether a stream includes its usage. */
  readonly includesUsage: boolean;
  /** Whether it has its vendor cache for an hour. */
  readonly mayCacheForHour: boolean;
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
    | 'showsReasoning'
    | 'cache'
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
  'cache_control',
];

const any = () => true;
const isZero = (value: unknown) => value === 0;

/** Hints without guaranteed effect, and members at their defaults. */
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

/** A body below this cannot contain too much text: re-encoding takes at most six bytes per character. */
const maxShortBody = openaiLimits.textBytes / 6;

/**
 * Parses a request of so many characters for a provider. Throws validation_violation naming the member, and
 * payload_too_large.
 */
export function readChatRequest(
  body: unknown,
  { characters, provider, openToolCall }: { characters: number; provider: ProviderName; openToolCall: OpenToolCall },
): ChatRequest {
  const members = new Members(body, '');
  members.refuseOthers(taken, ignored);
  const caches = new CacheControls(provider);
  const tools = (members.list('tools', openaiLimits.tools) ?? []).map((tool, index) =>
    toolOf(new Members(tool, members.at(`tools.${index}`)), caches),
  );
  const streamOptions = members.object('stream_options');
  streamOptions?.refuseOthers(['include_usage'], { include_obfuscation: (value) => value === false });
  const stream = members.flag('stream') ?? false;
  if (streamOptions !== undefined && !stream) throw refused('stream_options', 'is only for streams');
  const user = members.name('user', openaiLimits.userCharacters);
  const maxTokens = members.whole('max_completion_tokens', 1_000_000) ?? members.whole('max_tokens', 1_000_000);
  const messages = messagesOf(members, { openToolCall, caches });
  const cache = caches.of(members);
  if (characters > maxShortBody) refuseLongText({ messages, tools });
  return {
    model: members.neededText('model'),
    user,
    stream,
    includesUsage: streamOptions?.flag('include_usage') ?? false,
    mayCacheForHour: caches.hasHour,
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
      showsReasoning: true,
      cache,
    },
  };
}

function toolOf(tool: Members, caches: CacheControls): Tool {
  tool.one('type', ['function']);
  tool.refuseOthers(['type', 'function', 'cache_control']);
  const described = tool.object('function');
  if (described === undefined) throw refused(tool.at('function'), 'is required');
  described.refuseOthers(['name', 'description', 'parameters', 'strict', 'cache_control']);
  const name = described.neededText('name');
  if (!isToolName(name)) throw refused(described.at('name'), 'must match ^[a-zA-Z0-9_-]{1,64}$');
  return {
    name,
    description: described.text('description'),
    inputSchema: described.object('parameters')?.plain() ?? { type: 'object', properties: {} },
    strict: described.flag('strict'),
    // Clients write it in either place.
    cache: caches.of(tool) ?? caches.of(described),
  };
}

function toolChoiceOf(members: Members, tools: readonly Tool[]): ModelCall['toolChoice'] {
  const choice = members.get('tool_choice');
  if (choice === undefined) return undefined;
  if (typeof choice === 'string') {
    const mode = members.one('tool_choice', ['auto', 'none', 'required']);
    if (tools.length === 0 && mode === 'required') throw refused('tool_choice', 'needs tools');
    return tools.length === 0 ? undefined : mode;
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
  if (list === undefined || !list.every((text) => typeof text === 'string' && text !== '')) {
    throw refused('stop', `must be a string or a list of at most ${openaiLimits.stops} strings`);
  }
  return list.length === 0 ? undefined : list.map(String);
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
