import { chatReplies, failures, type Reply, responseReplies } from './replies.ts';

/** The members of a request beside its model, and the vendor's answer to it. */
export interface Call {
  readonly members: Readonly<Record<string, unknown>>;
  readonly reply: Reply;
}

const image =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const parameters = {
  type: 'object',
  properties: { city: { type: 'string', enum: ['Łódź', 'Paris'] } },
  required: ['city'],
  additionalProperties: false,
};
const schema = {
  type: 'object',
  properties: { city: { type: 'string' }, size: { type: 'number', multipleOf: 0.1 } },
  required: ['city', 'size'],
  additionalProperties: false,
};
const messages = [
  { role: 'developer', content: 'You answer in one word.' },
  { role: 'user', content: 'The capital of France — "Łódź" or\u2028Paris? 😀' },
];
const answeredTools = [
  ...messages,
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } }],
  },
  { role: 'tool', tool_call_id: 'call_0', content: '{"degrees":21.50}' },
];
const tool = { type: 'function', function: { name: 'weather', description: 'Tells it.', parameters, strict: true } };
const asked = { stream_options: { include_usage: true } };

const failing = (members: Call['members']): Record<string, Call> =>
  Object.fromEntries(Object.entries(failures).map(([status, reply]) => [`error ${status}`, { members, reply }]));

/** Calls of chat completions by name. */
export const chatCalls: Readonly<Record<string, Call>> = {
  plain: {
    members: { messages, temperature: 0.30000000000000004, max_completion_tokens: 99 },
    reply: chatReplies.plain,
  },
  'older cap': { members: { messages, max_tokens: 99, stop: ['\n'] }, reply: chatReplies.plain },
  streamed: { members: { messages, stream: true }, reply: chatReplies.stream },
  'streamed, usage asked': { members: { messages, stream: true, ...asked }, reply: chatReplies.stream },
  'tools, parallel, strict': {
    members: { messages: answeredTools, tools: [tool], tool_choice: 'auto', parallel_tool_calls: true },
    reply: chatReplies.tools,
  },
  'tools, streamed': {
    members: { messages, tools: [tool], stream: true, ...asked },
    reply: chatReplies.toolStream,
  },
  image: {
    members: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url: image, detail: 'low' } },
          ],
        },
      ],
    },
    reply: chatReplies.plain,
  },
  json_schema: {
    members: {
      messages,
      response_format: { type: 'json_schema', json_schema: { name: 'town', schema, strict: true } },
    },
    reply: chatReplies.json,
  },
  refusal: { members: { messages }, reply: chatReplies.refusal },
  annotations: { members: { messages }, reply: chatReplies.annotations },
  reasoning: {
    members: {
      messages: [...messages, { role: 'assistant', content: 'Paris', reasoning_content: 'Hm.' }, ...messages],
      reasoning_effort: 'low',
    },
    reply: chatReplies.reasoning,
  },
  logprobs: { members: { messages, logprobs: true, top_logprobs: 2 }, reply: chatReplies.logprobs },
  'logprobs, streamed': { members: { messages, logprobs: true, stream: true }, reply: chatReplies.logprobStream },
  hints: {
    members: { messages, seed: 7, metadata: { a: 'b' }, user: 'jane', prompt_cache_key: 'k', store: false },
    reply: chatReplies.plain,
  },
  'members of a future API': {
    members: { messages: [{ role: 'user', content: 'x', made_up: 1.5 }], made_up: { deep: [null, 'Ł'] } },
    reply: chatReplies.plain,
  },
  ...failing({ messages }),
};

const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Which is it? 😀' }] }];
const flatTool = { type: 'function', name: 'weather', description: 'Tells it.', parameters, strict: true };

/** Calls of responses by name. */
export const responseCalls: Readonly<Record<string, Call>> = {
  plain: {
    members: { input: 'Hello', instructions: 'Be short.', max_output_tokens: 99 },
    reply: responseReplies.plain,
  },
  streamed: { members: { input, stream: true }, reply: responseReplies.stream },
  'tools, parallel, strict': {
    members: {
      input: [
        ...input,
        { type: 'function_call', call_id: 'call_0', name: 'weather', arguments: '{"city":"Paris"}' },
        { type: 'function_call_output', call_id: 'call_0', output: '{"degrees":21.50}' },
      ],
      tools: [flatTool, { type: 'custom', name: 'patch' }],
      parallel_tool_calls: true,
    },
    reply: responseReplies.tools,
  },
  'tools, streamed': { members: { input, tools: [flatTool], stream: true }, reply: responseReplies.toolStream },
  image: {
    members: {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is it?' },
            { type: 'input_image', image_url: image, detail: 'low' },
          ],
        },
      ],
    },
    reply: responseReplies.plain,
  },
  json_schema: {
    members: { input, text: { format: { type: 'json_schema', name: 'town', schema, strict: true } } },
    reply: responseReplies.json,
  },
  refusal: { members: { input }, reply: responseReplies.refusal },
  annotations: { members: { input }, reply: responseReplies.annotations },
  reasoning: {
    members: {
      input: [...input, { type: 'reasoning', id: 'rs_0', summary: [], encrypted_content: 'gAAA+/=' }],
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'low', summary: 'auto' },
    },
    reply: responseReplies.reasoning,
  },
  logprobs: {
    members: { input, top_logprobs: 2, include: ['message.output_text.logprobs'] },
    reply: responseReplies.logprobs,
  },
  'members of a future API': { members: { input, made_up: { deep: [null, 1.5] } }, reply: responseReplies.plain },
  ...failing({ input }),
};

/** Requests as few programs write them: digits, escapes, blanks. */
export const oddChat = `\n{ "made_up" : [9007199254740993, 1.10, -0, 1E+2, "\\u00e9\\/"],\t"model" : "MODEL" ,
  "messages":[ {"role":"user","content":"\\ud83d\\ude00 \\u0041"} ], "temperature" : 1.0e0 }\n`;
export const oddStream = oddChat.replace('"temperature"', '"stream":true,"stream_options": { "x":1.0 } ,"temperature"');
export const oddResponse = oddChat.replace(/"messages":(\[.*\]),/, '"input":$1,');
