/** What the scripted vendor answers to one request. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON as it is sent. */
  readonly body?: string;
  /** Server-sent events as they are sent. */
  readonly events?: readonly string[];
}

/** The members of an answer whose text no client may see changed: digits, escapes, members of a future API. */
const oddities = '"created":1790000000,"made_up":{"pi":3.14159265358979323846,"big":9007199254740993,"e":"\\u00e9\\/"}';
const chatUsage =
  '{"prompt_tokens":24,"completion_tokens":9,"total_tokens":33,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":4}}';

const head = { 'x-request-id': 'req_fidelity', 'openai-processing-ms': '41' };

function chat(members: string, finish = 'stop', more = ''): Reply {
  return {
    headers: { ...head, 'x-ratelimit-remaining-tokens': '1000' },
    body: `{ "id":"chatcmpl-1","object":"chat.completion",${oddities},"model":"gpt-5.4-2026-03-05",
  "choices":[{"index":0,"message":{"role":"assistant",${members}},"finish_reason":"${finish}"${more}}],
  "usage":${chatUsage}, "service_tier":"default" }\n`,
  };
}

function chunk(delta: string, finish = 'null', more = ''): string {
  return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk",${oddities},"model":"gpt-5.4-2026-03-05","choices":[{"index":0,"delta":{${delta}},"finish_reason":${finish}${more}}],"usage":null,"obfuscation":"x9"}\n\n`;
}

const usageChunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.4-2026-03-05","choices":[],"usage":${chatUsage}}\n\n`;
const done = 'data: [DONE]\n\n';

const call = (id: string, city: string) =>
  `{"id":"${id}","type":"function","function":{"name":"weather","arguments":"{\\"city\\": \\"${city}\\", \\"id\\": 9007199254740993}"}}`;
const callPiece = (index: number, piece: string) =>
  `"tool_calls":[{"index":${index},${index === 0 && piece === '' ? '"id":"call_a","type":"function",' : ''}${index === 1 && piece === '' ? '"id":"call_b","type":"function",' : ''}"function":{${piece === '' ? '"name":"weather",' : ''}"arguments":${JSON.stringify(piece)}}}]`;
const citation =
  '{"type":"url_citation","url_citation":{"start_index":0,"end_index":5,"url":"https://example.com/a","title":"A"}}';
const logprobs =
  '"logprobs":{"content":[{"token":"Paris","logprob":-0.0000318,"bytes":[80,97,114,105,115],"top_logprobs":[]}],"refusal":null}';

const responseUsage =
  '{"input_tokens":24,"input_tokens_details":{"cached_tokens":8},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":33}';

function responseOf(output: string, status = 'completed'): string {
  return `{"id":"resp_1","object":"response","created_at":1790000000,"status":"${status}","error":null,"incomplete_details":null,"instructions":null,"model":"gpt-5.4-2026-03-05","output":[${output}],"parallel_tool_calls":true,"store":false,"temperature":1.0,"tools":[],"tool_choice":"auto","top_p":1.0,"metadata":{},"made_up":9007199254740993,"usage":${status === 'completed' ? responseUsage : 'null'}}`;
}

const message = (part: string) =>
  `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[${part}]}`;
const outputText = (annotations = '', more = '"logprobs":[]') =>
  `{"type":"output_text","text":"Paris \\u00e9","annotations":[${annotations}],${more}}`;
const reasoning =
  '{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Thought."}],"encrypted_content":"gAAA+/="}';
const functionCall = (id: string, city: string) =>
  `{"id":"fc_${id}","type":"function_call","status":"completed","call_id":"call_${id}","name":"weather","arguments":"{\\"city\\":\\"${city}\\"}"}`;

function response(output: string): Reply {
  return { headers: head, body: responseOf(output) };
}

function responseEvents(output: string, pieces: readonly string[] = []): Reply {
  const texts = [
    `{"type":"response.created","response":${responseOf('', 'in_progress')}`,
    ...(pieces.length === 0
      ? [`{"type":"response.output_item.added","output_index":0,"item":${output}`]
      : [
          `{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}`,
          '{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}',
          ...pieces.map(
            (piece) =>
              `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":${JSON.stringify(piece)},"logprobs":[],"obfuscation":"a1"`,
          ),
        ]),
    '{"type":"response.made_up","value":9007199254740993',
    `{"type":"response.output_item.done","output_index":0,"item":${output}`,
    `{"type":"response.completed","response":${responseOf(output)}`,
  ];
  const events = texts.map(
    (text, number) => `event: ${/"type":"([\w.]+)"/.exec(text)?.[1]}\ndata: ${text},"sequence_number":${number}}\n\n`,
  );
  return { headers: head, events };
}

function failure(status: number, type: string, code: string, headers: Record<string, string> = {}): Reply {
  const error = { message: `The vendor says ${code}.`, type, param: 'messages', code };
  return { status, headers: { ...head, ...headers }, body: JSON.stringify({ error }) };
}

/** Answers of chat completions by name. */
export const chatReplies = {
  plain: chat('"content":"Paris \\u00e9","refusal":null,"annotations":[]'),
  stream: {
    headers: head,
    events: [
      chunk('"role":"assistant","content":"","refusal":null'),
      ': alive\n\n',
      chunk('"content":"Par"'),
      chunk('"content":"is \\u00e9"'),
      chunk('', '"stop"'),
      usageChunk,
      done,
    ],
  },
  tools: chat(
    `"content":null,"refusal":null,"tool_calls":[${call('call_a', 'Łódź')},${call('call_b', 'Paris')}]`,
    'tool_calls',
  ),
  toolStream: {
    headers: head,
    events: [
      chunk('"role":"assistant","content":null'),
      ...['', '{"city": "Łó', 'dź"}'].map((piece) => chunk(callPiece(0, piece))),
      ...['', '{"city": "Paris"}'].map((piece) => chunk(callPiece(1, piece))),
      chunk('', '"tool_calls"'),
      usageChunk,
      done,
    ],
  },
  json: chat('"content":"{\\"city\\":\\"Paris\\",\\"size\\":2.10}","refusal":null'),
  refusal: chat('"content":null,"refusal":"I cannot help with that."'),
  annotations: chat(`"content":"Paris","refusal":null,"annotations":[${citation}]`),
  reasoning: chat('"content":"Paris","reasoning_content":"Thought.","reasoning":"Thought."'),
  logprobs: chat('"content":"Paris","refusal":null', 'stop', `,${logprobs}`),
  logprobStream: {
    headers: head,
    events: [
      chunk('"role":"assistant","content":"Paris"', 'null', `,${logprobs}`),
      chunk('', '"stop"'),
      usageChunk,
      done,
    ],
  },
} as const satisfies Record<string, Reply>;

/** Answers of responses by name. */
export const responseReplies = {
  plain: response(message(outputText())),
  stream: responseEvents(message(outputText()), ['Paris', ' é']),
  tools: response(`${functionCall('a', 'Łódź')},${functionCall('b', 'Paris')}`),
  toolStream: responseEvents(functionCall('a', 'Łódź')),
  json: response(message('{"type":"output_text","text":"{\\"city\\":\\"Paris\\",\\"size\\":2.10}","annotations":[]}')),
  refusal: response(message('{"type":"refusal","refusal":"I cannot help with that."}')),
  annotations: response(
    message(
      outputText(
        '{"type":"url_citation","start_index":0,"end_index":5,"url":"https://example.com/a","title":"A"}',
        '"logprobs":[]',
      ),
    ),
  ),
  reasoning: response(`${reasoning},${message(outputText())}`),
  logprobs: response(
    message(outputText('', '"logprobs":[{"token":"Paris","logprob":-0.0000318,"bytes":[80],"top_logprobs":[]}]')),
  ),
} as const satisfies Record<string, Reply>;

/** Errors of both. */
export const failures = {
  400: failure(400, 'invalid_request_error', 'unsupported_value'),
  401: failure(401, 'invalid_request_error', 'invalid_api_key'),
  429: failure(429, 'requests', 'rate_limit_exceeded', { 'retry-after': '7', 'retry-after-ms': '7000' }),
  500: failure(500, 'server_error', 'internal_error'),
} as const;
