import { endUser, idempotencyKey, json, listOf, nullable, object, ref, text, values } from '../formats/described.ts';
import { anthropicLimits } from './limits.ts';

/** The path of the document, which is no tenant's name. */
export const documentPath = '/anthropic/openapi.json';

const freeJson = { type: 'object', additionalProperties: true };
const count = { type: 'integer', minimum: 0 };

const Content = {
  anyOf: [text(), listOf(ref('Block'))],
};

const Block = object(
  {
    type: values(
      ...['text', 'image', 'document', 'search_result', 'thinking', 'redacted_thinking', 'tool_use', 'tool_result'],
      ...['tool_reference', 'tool_addition', 'tool_removal', 'browser_state', 'compaction'],
    ),
  },
  ['type'],
  {
    additionalProperties: true,
    description:
      'As Anthropic describes it. The source of an image is base64, that of a document base64, text or content: URLs and files are 400.',
  },
);

const Tool = object(
  {
    type: nullable({
      type: 'string',
      pattern: '^(?:custom|(?:bash|text_editor|computer|memory)_.*)$',
      description: 'Left out, `custom`, or a tool that the client runs. Any other is 400.',
    }),
    name: text(),
  },
  [],
  { additionalProperties: true },
);

const counted = {
  model: {
    type: 'string',
    maxLength: anthropicLimits.modelCharacters,
    description: "Anthropic's id of a model, such as `claude-sonnet-5-5`. With `anthropic/` before it, it is the same.",
  },
  messages: {
    ...listOf(object({ role: text(), content: Content }, ['role'], { additionalProperties: true })),
    minItems: 1,
    maxItems: anthropicLimits.messages,
  },
  system: Content,
  tools: listOf(ref('Tool'), anthropicLimits.tools),
};

const open = {
  additionalProperties: true,
  description:
    'Passed on as it came. 400 are `mcp_servers`, `container`, `thread`, `fallbacks`, `fallback_credit_token`, `billing_policy`, ' +
    'and ids of what is kept at the provider.',
};

const MessageRequest = object(
  {
    ...counted,
    max_tokens: { type: 'integer', minimum: 0, maximum: 1_000_000 },
    stream: { type: 'boolean' },
    metadata: object({ user_id: nullable(text()) }, [], { additionalProperties: true }),
  },
  ['model', 'messages', 'max_tokens'],
  open,
);

const Model = object(
  { type: values('model'), id: text(), display_name: text(), created_at: { type: 'string', format: 'date-time' } },
  ['type', 'id', 'display_name', 'created_at'],
);

const AnthropicError = object(
  { type: values('error'), error: object({ type: text(), message: text() }, ['type', 'message']), request_id: text() },
  ['type', 'error', 'request_id'],
);

const faults: Readonly<Record<number, string>> = {
  400: 'The request is not valid: the message names the member.',
  401: 'The key or the access token is not good, or there are two.',
  403: 'The credential has no `ai.completion_manage`, or is of another tenant, or the key is of another user.',
  404: 'There is no such model for the caller.',
  409: 'The `Idempotency-Key` belongs to another body, or to a stream that was too long to be stored.',
  413: `The body has more than ${anthropicLimits.bodyBytes} bytes, or ${anthropicLimits.textBytes} bytes of text.`,
  415: 'The body is no JSON.',
  429: 'A limit is reached. With `x-should-retry: false`: a budget is used up. Otherwise with `Retry-After`.',
  500: 'Annals failed.',
  502: 'The provider failed.',
  503: 'Annals or its database is busy or away.',
  504: 'The provider took too long.',
};

function errors(...statuses: readonly number[]) {
  const described = statuses.map((status) => [status, { description: faults[status], content: json(ref('Error')) }]);
  return Object.fromEntries(described);
}

const version = {
  name: 'anthropic-version',
  in: 'header',
  schema: { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
  description: 'Passed on. Default: `2023-06-01`.',
};

const betas = {
  name: 'anthropic-beta',
  in: 'header',
  schema: { type: 'string', maxLength: 4_096 },
  description: 'Passed on. Betas that keep, fetch or run something at the provider are 400.',
};

function post(operationId: string, summary: string, body: string, answer: object, more: object[] = []) {
  return {
    operationId,
    summary,
    tags: ['Anthropic clients'],
    parameters: [version, betas, ...more],
    requestBody: { required: true, content: json(ref(body)) },
    responses: {
      200: { description: 'The answer, as the provider sent it.', content: answer },
      ...errors(...Object.keys(faults).map(Number)),
    },
  };
}

function read(operationId: string, summary: string, answer: object, more: object = {}) {
  return {
    operationId,
    summary,
    tags: ['Anthropic clients'],
    ...more,
    responses: { 200: { description: 'The answer.', ...answer }, ...errors(400, 401, 403, 404, 429, 500, 503) },
  };
}

const query = (name: string, schema: object, description: string) => ({ name, in: 'query', schema, description });

/** The OpenAPI document for Anthropic clients as JSON text. */
export function anthropicDocument({ version: release, address }: { version: string; address: string }): string {
  const tenant = { default: 'acme', description: 'The tenant.' };
  const events = text(
    "Anthropic's events, as they were sent. A stream that fails ends with `error` and a cut connection.",
  );
  return JSON.stringify({
    openapi: '3.1.0',
    info: {
      title: 'Annals for Anthropic clients',
      version: release,
      summary: "What Annals takes of Anthropic's format, for the models of Anthropic.",
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: `${address}/anthropic/{tenant}`, variables: { tenant } }],
    security: [{ key: [] }, { apiKey: [] }],
    tags: [{ name: 'Anthropic clients', description: 'The base URL of a client is the server above.' }],
    paths: {
      '/': { head: read('probe', 'Whether the endpoint is there', {}) },
      '/v1/messages': {
        post: post(
          'createMessage',
          'Passing a message through',
          'MessageRequest',
          { ...json(freeJson), 'text/event-stream': { schema: events } },
          [idempotencyKey, endUser],
        ),
      },
      '/v1/messages/count_tokens': {
        post: post(
          'countTokens',
          'Counting the tokens of a message',
          'CountRequest',
          json(object({ input_tokens: count }, ['input_tokens'], { additionalProperties: true })),
        ),
      },
      '/v1/models': {
        get: read(
          'listModels',
          'Listing the models that the caller may name',
          {
            content: json(
              object(
                {
                  data: listOf(ref('Model')),
                  has_more: { type: 'boolean' },
                  first_id: nullable(text()),
                  last_id: nullable(text()),
                },
                ['data', 'has_more', 'first_id', 'last_id'],
              ),
            ),
          },
          {
            parameters: [
              query(
                'limit',
                { type: 'integer', minimum: 1, maximum: anthropicLimits.models, default: 20 },
                'Of a page.',
              ),
              query('after_id', text(), 'The `last_id` of the page before.'),
              query('before_id', text(), 'The `first_id` of the page after.'),
            ],
          },
        ),
      },
      '/v1/models/{model}': {
        parameters: [{ name: 'model', in: 'path', required: true, schema: text(), description: 'Its id.' }],
        get: read('getModel', 'Retrieving a model', { content: json(ref('Model')) }),
      },
    },
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'A key, or an access token, with `ai.completion_manage`.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The same.' },
      },
      schemas: {
        MessageRequest,
        CountRequest: object(counted, ['model', 'messages'], open),
        Block,
        Tool,
        Model,
        Error: AnthropicError,
      },
    },
  });
}
