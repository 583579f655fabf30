// The OpenAPI document for OpenAI clients. Long because it is one document, whose parts refer to each other.
import { reasoningEfforts } from '../../providers/port.ts';
import { leftOutHeader } from '../formats/answer-calls.ts';
import { endUser, idempotencyKey, json, listOf, nullable, object, ref, text, values } from '../formats/described.ts';
import { openaiLimits } from './limits.ts';

/** The path of the document, which is no tenant's name. */
export const documentPath = '/openai/openapi.json';

const toolName = { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$' };
const cap = { type: 'integer', minimum: 1, maximum: 1_000_000 };
const model = {
  type: 'string',
  maxLength: openaiLimits.modelCharacters,
  description: '`provider/model`, such as `anthropic/claude-sonnet-5-5`, or the bare id of a model of the catalogue.',
};
const user = {
  type: 'string',
  maxLength: openaiLimits.userCharacters,
  description:
    'The record of the call has it. With the shared token it goes out as a hash; `anthropic` and `google` do not get it.',
};
const passedAlone = 'For `openai` and `self_hosted`.';
const freeJson = { type: 'object', additionalProperties: true };

const Message = object(
  {
    role: values('developer', 'system', 'user', 'assistant', 'tool'),
    content: {
      anyOf: [text(), listOf(ref('Part')), { type: 'null' }],
      description: 'Of an assistant with `tool_calls` it may be null.',
    },
    tool_calls: { ...listOf(ref('ToolCall'), openaiLimits.tools), description: 'Of an assistant, as they came.' },
    refusal: nullable(text('Of an assistant, as it came.')),
    name: text('Who speaks, or the tool. `anthropic` and `google` do not get it.'),
    reasoning_content: text('Of an assistant, as it came. `anthropic` and `google` do not get it.'),
    cache_control: ref('CacheControl'),
    tool_call_id: text('Of a tool: the `id` of the call, as it came.'),
  },
  ['role'],
);

const Part = {
  anyOf: [
    object({ type: values('text'), text: text(), cache_control: ref('CacheControl') }, ['type', 'text']),
    object({ type: values('refusal'), refusal: text() }, ['type', 'refusal']),
    object({ type: values('image_url'), image_url: ref('Image'), cache_control: ref('CacheControl') }, [
      'type',
      'image_url',
    ]),
    object({ type: values('input_audio', 'file'), input_audio: freeJson, file: freeJson }, ['type'], {
      description: 'For `openai` and `self_hosted`, with an own key without budgets.',
    }),
  ],
};

const ChatRequest = object(
  {
    model,
    messages: { ...listOf(ref('Message'), openaiLimits.messages), minItems: 1 },
    stream: { type: 'boolean' },
    stream_options: object({ include_usage: { type: 'boolean' } }),
    tools: listOf(ref('Tool'), openaiLimits.tools),
    tool_choice: {
      anyOf: [
        values('auto', 'none', 'required'),
        object({ type: values('function'), function: object({ name: toolName }, ['name']) }, ['type', 'function']),
        object({ type: values('custom', 'allowed_tools') }, ['type'], { description: passedAlone }),
      ],
    },
    parallel_tool_calls: { type: 'boolean' },
    response_format: ref('ResponseFormat'),
    max_completion_tokens: cap,
    max_tokens: { ...cap, description: 'The older name of `max_completion_tokens`.' },
    temperature: { type: 'number', minimum: 0, maximum: 2 },
    top_p: { type: 'number', minimum: 0, maximum: 1 },
    stop: { anyOf: [text(), listOf(text(), openaiLimits.stops)] },
    reasoning_effort: values(...reasoningEfforts),
    n: { type: 'integer', minimum: 1, maximum: 8, description: 'With the shared token and for other providers: 1.' },
    cache_control: ref('CacheControl'),
    user,
  },
  ['model', 'messages'],
  {
    description:
      'For `openai` and `self_hosted` passed through: with an own key any other member too. Objects that are kept at the provider are 400. ' +
      'For `anthropic` and `google` translated: any other member is 400 by its name, but ignored are `seed`, `metadata`, `service_tier`, ' +
      '`prompt_cache_key`, `prompt_cache_retention`, `safety_identifier`, `verbosity`, `store`, and members that are null or at their default.',
  },
);

const Tool = {
  anyOf: [
    object(
      {
        type: values('function'),
        function: object(
          { name: toolName, description: text(), parameters: freeJson, strict: nullable({ type: 'boolean' }) },
          ['name'],
        ),
        cache_control: ref('CacheControl'),
      },
      ['type', 'function'],
    ),
    object({ type: text('`custom`, or a hosted tool, which is left out.') }, ['type'], { description: passedAlone }),
  ],
};

const jsonSchema = object(
  { name: text(), description: text(), schema: freeJson, strict: nullable({ type: 'boolean' }) },
  ['name', 'schema'],
);
const ResponseFormat = object({ type: values('text', 'json_object', 'json_schema'), json_schema: jsonSchema }, [
  'type',
]);

const ToolCall = object(
  {
    id: text('May have sealed reasoning of the model. Send it back as it came.'),
    type: values('function'),
    function: object({ name: text(), arguments: text('JSON, as the model wrote it.') }, ['name', 'arguments']),
    cache_control: ref('CacheControl'),
  },
  ['id', 'type', 'function'],
);

const CacheControl = {
  ...nullable(object({ type: values('ephemeral'), ttl: values('5m', '1h') }, ['type'])),
  description: 'Has `anthropic` cache the request up to here. At most four in a request; with `google`: 400.',
};

const count = { type: 'integer', minimum: 0 };
const Usage = object(
  {
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: object({ cached_tokens: count, cache_write_tokens: count }),
    completion_tokens_details: object({ reasoning_tokens: count }),
  },
  ['prompt_tokens', 'completion_tokens', 'total_tokens'],
  { description: 'Has the figures that the provider reported, and is left out without them.' },
);

const head = (kind: string) => ({ id: text(), object: values(kind), created: count, model: text() });
const finishReason = values('stop', 'length', 'tool_calls', 'content_filter');
const nothing = { type: 'null' };

const ChatCompletion = object(
  {
    ...head('chat.completion'),
    choices: listOf(
      object(
        {
          index: count,
          message: object(
            {
              role: values('assistant'),
              content: nullable(text()),
              refusal: nullable(text('What the model says, or its provider, where it refuses to answer.')),
              annotations: listOf({ type: 'object' }, 0),
              reasoning_content: text('What the provider shows of the reasoning. Left out: nothing.'),
              tool_calls: listOf(ref('ToolCall')),
            },
            ['role', 'content'],
          ),
          logprobs: nothing,
          finish_reason: finishReason,
        },
        ['index', 'message', 'finish_reason'],
      ),
      1,
    ),
    usage: ref('Usage'),
  },
  ['id', 'object', 'created', 'model', 'choices'],
);

const Model = object({ id: text(), object: values('model'), created: count, owned_by: text() }, [
  'id',
  'object',
  'created',
  'owned_by',
]);

const OpenaiError = object(
  {
    error: object({ message: text(), type: text(), param: nullable(text()), code: nullable(text()) }, [
      'message',
      'type',
      'param',
      'code',
    ]),
  },
  ['error'],
);

const ResponseRequest = object(
  {
    model: { ...model, description: 'A model of `openai` or `self_hosted`.' },
    input: { anyOf: [text(), listOf(freeJson, openaiLimits.items)] },
    instructions: text(),
    max_output_tokens: cap,
    temperature: { type: 'number' },
    top_p: { type: 'number' },
    tools: {
      ...listOf(freeJson, openaiLimits.tools),
      description:
        'Functions, custom tools and namespaces of them. Hosted ones are left out, as the answer says; others are 400.',
    },
    tool_choice: { anyOf: [text(), freeJson] },
    parallel_tool_calls: { type: 'boolean' },
    text: freeJson,
    reasoning: freeJson,
    include: listOf(text()),
    truncation: text(),
    stream: { type: 'boolean' },
    stream_options: freeJson,
    store: { type: 'boolean', enum: [false] },
    user,
  },
  ['model', 'input'],
);

const tokenIds = { type: 'array', items: { type: 'integer', minimum: 0 }, minItems: 1 };
const EmbeddingsRequest = object(
  {
    model: { ...model, description: 'A model of `openai` or `self_hosted`, with a key of yours.' },
    input: {
      anyOf: [
        text(),
        { ...listOf(text(), openaiLimits.inputs), minItems: 1 },
        tokenIds,
        listOf(tokenIds, openaiLimits.inputs),
      ],
      description: 'A text, several, or token ids instead of one or of several.',
    },
    encoding_format: text('`float` or `base64`.'),
    dimensions: { type: 'integer', minimum: 1 },
    user,
  },
  ['model', 'input'],
  { description: 'Any other member too, except what is kept at the provider, `messages` and `stream`.' },
);

const errors = Object.fromEntries(
  [
    [400, 'The request is not valid, or its model does not take it: `param` names the member.'],
    [401, 'The key or the access token is not good.'],
    [403, 'The credential has no `ai.completion_manage`, or is of another tenant, or the key is of another user.'],
    [404, 'There is no such model for the caller.'],
    [409, 'The `Idempotency-Key` belongs to another body, or to an answer that was too long to be stored.'],
    [413, `The body has more than ${openaiLimits.bodyBytes} bytes, or ${openaiLimits.textBytes} bytes of text.`],
    [415, 'The body is no JSON.'],
    [429, 'A limit is reached. `insufficient_quota`: the quota or a budget is used up. Otherwise with `Retry-After`.'],
    [500, 'Annals failed.'],
    [502, 'The provider failed.'],
    [503, 'Annals or its database is busy or away.'],
    [504, 'The provider took too long.'],
  ].map(([status, description]) => [status, { description, content: json(ref('Error')) }]),
);

function post(
  operationId: string,
  summary: string,
  { body, answer, events, leftOut }: { body: string; answer: object; events?: string; leftOut?: string },
) {
  return {
    operationId,
    summary,
    tags: ['OpenAI clients'],
    parameters: [idempotencyKey, endUser],
    requestBody: { required: true, content: json(ref(body)) },
    responses: {
      200: {
        description: events === undefined ? 'The answer.' : 'The answer. With `stream`: its events.',
        ...(leftOut !== undefined && { headers: { [leftOutHeader]: { description: leftOut, schema: text() } } }),
        content: {
          ...json(answer),
          ...(events !== undefined && { 'text/event-stream': { schema: text(events) } }),
        },
      },
      ...errors,
    },
  };
}

function get(operationId: string, summary: string, answer: object) {
  const {
    400: invalid,
    401: unauthorized,
    403: forbidden,
    404: unknown,
    429: limited,
    500: failed,
    503: busy,
  } = errors;
  return {
    operationId,
    summary,
    tags: ['OpenAI clients'],
    responses: {
      200: { description: 'The answer.', content: json(answer) },
      ...{ 400: invalid, 401: unauthorized, 403: forbidden, 404: unknown, 429: limited, 500: failed, 503: busy },
    },
  };
}

/** The OpenAPI document for OpenAI clients as JSON text: the supported part of their format. */
export function openaiDocument({ version, address }: { version: string; address: string }): string {
  const tenant = { default: 'acme', description: 'The tenant.' };
  return JSON.stringify({
    openapi: '3.1.0',
    info: {
      title: 'Annals for OpenAI clients',
      version,
      summary: "What Annals takes of OpenAI's format, for the models of every provider.",
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: `${address}/openai/{tenant}/v1`, variables: { tenant } }],
    security: [{ key: [] }],
    tags: [{ name: 'OpenAI clients', description: 'The base URL of a client is the server above.' }],
    paths: {
      '/chat/completions': {
        post: post('createChatCompletion', 'Answering a conversation', {
          body: 'ChatCompletionRequest',
          answer: {
            anyOf: [ref('ChatCompletion'), freeJson],
            description: 'Of `openai` and `self_hosted`: as it was sent.',
          },
          events:
            '`data:` with a chunk of the answer each, then `data: [DONE]`. A stream that fails ends with `data: {"error": …}` and a cut connection.',
          leftOut:
            'What the call was made without: the types of hosted tools, each once; `strict` where a tool or the format has it and the model does not.',
        }),
      },
      '/responses': {
        post: post('createResponse', 'Passing a response through', {
          body: 'ResponseRequest',
          answer: freeJson,
          events: 'The events as they were sent.',
          leftOut: 'The types of the hosted tools that the call was made without, each once: `web_search, mcp`.',
        }),
      },
      '/embeddings': {
        post: post('createEmbeddings', 'Passing embeddings through', {
          body: 'EmbeddingsRequest',
          answer: object({ data: listOf(freeJson) }, ['data'], { description: 'As it was sent.' }),
        }),
      },
      '/models': {
        get: get(
          'listModels',
          'Listing the models that the caller may name',
          object({ object: values('list'), data: listOf(ref('Model')) }, ['object', 'data']),
        ),
      },
      '/models/{model}': {
        parameters: [
          { name: 'model', in: 'path', required: true, schema: text(), description: 'Slashes as they are.' },
        ],
        get: get('getModel', 'Retrieving a model', ref('Model')),
      },
    },
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'A key, or an access token, with `ai.completion_manage`.' },
      },
      schemas: {
        ChatCompletionRequest: ChatRequest,
        Message,
        Part,
        Image: object(
          { url: text('A `data:` URL with a PNG, JPEG, WebP or GIF.'), detail: values('auto', 'low', 'high') },
          ['url'],
        ),
        Tool,
        ToolCall,
        CacheControl,
        ResponseFormat,
        ChatCompletion,
        Usage,
        Model,
        ResponseRequest,
        EmbeddingsRequest,
        Error: OpenaiError,
      },
    },
  });
}
