/** How one vendor's requests are read and its answers written, as its public reference has them. */
export interface VendorFormat {
  name: 'openai' | 'anthropic' | 'google';
  /** undefined: the request is not one of this vendor's. */
  read(path: string, body: VendorBody): ReadRequest | undefined;
  answer(answer: VendorAnswer): unknown;
  /** Server-sent events, each as it goes over the wire. */
  events(answer: VendorAnswer): string[];
  error(status: number, message: string): unknown;
}

export interface ReadRequest {
  model: string;
  /** All text of the conversation, system included. */
  text: string;
  /** The most output tokens the request allows; undefined where it names no cap. */
  cap: number | undefined;
  streaming: boolean;
}

export interface VendorAnswer {
  text: string;
  toolCall?: { id: string; name: string; input: Record<string, unknown> };
  /** In the words of the `openai` format; left out: it ends by itself. */
  finish?: 'stop' | 'length' | 'content_filter';
  /** undefined: the answer has no usage. */
  usage: { input: number; output: number } | undefined;
}

// Vendors' requests are theirs; the tests read no more of them than this.
export interface VendorBody {
  model?: string;
  messages?: { role: string; content: string | { text?: string }[] }[];
  system?: string | { text: string }[];
  max_tokens?: number;
  max_completion_tokens?: number;
  max_output_tokens?: number;
  stream?: boolean;
  systemInstruction?: { parts: { text: string }[] };
  contents?: { role: string; parts: { text?: string }[] }[];
  generationConfig?: { maxOutputTokens?: number };
  tools?: unknown[];
  input?: unknown;
}

export const chatFormat: VendorFormat = {
  name: 'openai',
  read(path, body) {
    if (path !== '/v1/chat/completions') return undefined;
    return {
      model: body.model ?? '',
      text: textOfMessages(body),
      cap: body.max_completion_tokens ?? body.max_tokens,
      streaming: body.stream === true,
    };
  },
  answer: ({ text, toolCall, usage, finish = 'stop' }) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'm',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: toolCall === undefined ? text : null,
          refusal: null,
          ...(toolCall === undefined ? {} : { tool_calls: [chatToolCall(toolCall)] }),
        },
        logprobs: null,
        finish_reason: toolCall === undefined ? finish : 'tool_calls',
      },
    ],
    ...(usage === undefined ? {} : { usage: chatUsage(usage) }),
  }),
  events({ text, toolCall, usage, finish = 'stop' }) {
    const chunk = (delta: unknown, reason: string | null) => ({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1_790_000_000,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    const deltas =
      toolCall === undefined
        ? words(text).map((content, index) => chunk(index === 0 ? { role: 'assistant', content } : { content }, null))
        : [];
    const calls =
      toolCall === undefined ? [] : [chunk({ tool_calls: [{ index: 0, ...chatToolCall(toolCall) }] }, null)];
    return [
      ...[...deltas, ...calls, chunk({}, toolCall === undefined ? finish : 'tool_calls')].map(dataEvent),
      ...(usage === undefined ? [] : [dataEvent({ id: 'chatcmpl-1', choices: [], usage: chatUsage(usage) })]),
      'data: [DONE]\n\n',
    ];
  },
  error: (_status, message) => ({ error: { message, type: 'some_error', param: null, code: null } }),
};

export const messagesFormat: VendorFormat = {
  name: 'anthropic',
  read(path, body) {
    if (path !== '/v1/messages') return undefined;
    const { system: sent = [] } = body;
    const system = typeof sent === 'string' ? sent : sent.map(({ text }) => text).join('');
    return {
      model: body.model ?? '',
      text: system + textOfMessages(body),
      cap: body.max_tokens,
      streaming: body.stream === true,
    };
  },
  answer: ({ text, toolCall, usage }) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [toolCall === undefined ? { type: 'text', text } : { type: 'tool_use', ...toolCall }],
    stop_reason: toolCall === undefined ? 'end_turn' : 'tool_use',
    stop_sequence: null,
    ...(usage === undefined ? {} : { usage: { input_tokens: usage.input, output_tokens: usage.output } }),
  }),
  events({ text, toolCall, usage }) {
    const event = (data: { type: string; [key: string]: unknown }) => `event: ${data.type}\n${dataEvent(data)}`;
    const start =
      toolCall === undefined
        ? { type: 'text', text: '' }
        : { type: 'tool_use', id: toolCall.id, name: toolCall.name, input: {} };
    const deltas =
      toolCall === undefined
        ? words(text).map((word) => ({ type: 'text_delta', text: word }))
        : [{ type: 'input_json_delta', partial_json: JSON.stringify(toolCall.input) }];
    return [
      event({
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: usage?.input ?? 0, output_tokens: 1 },
        },
      }),
      event({ type: 'content_block_start', index: 0, content_block: start }),
      ...deltas.map((delta) => event({ type: 'content_block_delta', index: 0, delta })),
      event({ type: 'content_block_stop', index: 0 }),
      event({
        type: 'message_delta',
        delta: { stop_reason: toolCall === undefined ? 'end_turn' : 'tool_use', stop_sequence: null },
        usage: { output_tokens: usage?.output ?? 0 },
      }),
      event({ type: 'message_stop' }),
    ];
  },
  error: (_status, message) => ({ type: 'error', error: { type: 'some_error', message } }),
};

/** What counts tokens in the second vendor's format. */
const countTokens: VendorFormat = {
  ...messagesFormat,
  read: (path, body) =>
    path === '/v1/messages/count_tokens' ? messagesFormat.read('/v1/messages', { ...body, stream: false }) : undefined,
  answer: ({ usage }) => ({ input_tokens: usage?.input ?? 0 }),
};

const generateContent: VendorFormat = {
  name: 'google',
  read(path, body) {
    const match = /^\/v1beta\/models\/([^:/]+):(generateContent|streamGenerateContent)$/.exec(path);
    if (match === null) return undefined;
    const parts = [...(body.systemInstruction?.parts ?? []), ...(body.contents ?? []).flatMap((turn) => turn.parts)];
    return {
      model: match[1] ?? '',
      text: parts.map(({ text = '' }) => text).join(''),
      cap: body.generationConfig?.maxOutputTokens,
      streaming: match[2] === 'streamGenerateContent',
    };
  },
  answer: (answer) => candidate(answer, answer.text, 'STOP'),
  events(answer) {
    const parts = answer.toolCall === undefined ? words(answer.text) : [''];
    return parts.map((word, index) =>
      dataEvent(candidate(answer, word, index === parts.length - 1 ? 'STOP' : undefined)),
    );
  },
  error: (status, message) => ({ error: { code: status, message, status: 'SOME_ERROR' } }),
};

/** The Responses format of the first vendor. */
export const responsesFormat: VendorFormat = {
  name: 'openai',
  read(path, body) {
    if (path !== '/v1/responses') return undefined;
    const { model = '', max_output_tokens: cap, stream } = body;
    return { model, text: JSON.stringify(body), cap, streaming: stream === true };
  },
  answer: (answer) => response(answer, 'completed'),
  events(answer) {
    const { text } = answer;
    const events = [
      { type: 'response.created', response: { ...response(answer, 'in_progress'), output: [] } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { id: 'msg_1', type: 'message', role: 'assistant', content: [], status: 'in_progress' },
      },
      {
        type: 'response.content_part.added',
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        part: { type: 'output_text', text: '', annotations: [] },
      },
      ...words(text).map((delta) => ({
        type: 'response.output_text.delta',
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        delta,
      })),
      { type: 'response.completed', response: response(answer, 'completed') },
    ];
    return events.map((event, index) => `event: ${event.type}\n${dataEvent({ ...event, sequence_number: index })}`);
  },
  error: chatFormat.error,
};

function response({ text, toolCall, usage }: VendorAnswer, status: string) {
  const output =
    toolCall === undefined
      ? {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text, annotations: [] }],
        }
      : {
          id: 'fc_1',
          type: 'function_call',
          call_id: toolCall.id,
          name: toolCall.name,
          arguments: JSON.stringify(toolCall.input),
          status: 'completed',
        };
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_790_000_000,
    status,
    error: null,
    model: 'm',
    output: [output],
    ...(usage === undefined
      ? {}
      : {
          usage: {
            input_tokens: usage.input,
            input_tokens_details: { cached_tokens: 2 },
            output_tokens: usage.output,
            output_tokens_details: { reasoning_tokens: 1 },
            total_tokens: usage.input + usage.output,
          },
        }),
  };
}

/** Embeddings of the first vendor: one vector for each input, as numbers or base64. */
const embeddingsFormat: VendorFormat = {
  name: 'openai',
  read(path, body) {
    if (path !== '/v1/embeddings') return undefined;
    return { model: body.model ?? '', text: JSON.stringify(body.input), cap: undefined, streaming: false };
  },
  answer: ({ usage }) => ({
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: [0.25, -1] }],
    model: 'm',
    ...(usage === undefined ? {} : { usage: { prompt_tokens: usage.input, total_tokens: usage.input } }),
  }),
  events: () => [],
  error: chatFormat.error,
};

export const vendorFormats: readonly VendorFormat[] = [
  chatFormat,
  messagesFormat,
  countTokens,
  generateContent,
  responsesFormat,
  embeddingsFormat,
];

function candidate({ toolCall, usage }: VendorAnswer, text: string, finishReason: string | undefined) {
  const part =
    toolCall === undefined
      ? { text }
      : { functionCall: { id: toolCall.id, name: toolCall.name, args: toolCall.input } };
  return {
    candidates: [
      { content: { role: 'model', parts: [part] }, index: 0, ...(finishReason === undefined ? {} : { finishReason }) },
    ],
    ...(usage === undefined
      ? {}
      : {
          usageMetadata: {
            promptTokenCount: usage.input,
            candidatesTokenCount: usage.output,
            totalTokenCount: usage.input + usage.output,
          },
        }),
  };
}

function chatUsage({ input, output }: { input: number; output: number }) {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function chatToolCall({ id, name, input }: NonNullable<VendorAnswer['toolCall']>) {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function textOfMessages(body: VendorBody): string {
  return (body.messages ?? [])
    .map(({ content }) =>
      typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join(''),
    )
    .join('');
}

function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function words(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [''];
}
