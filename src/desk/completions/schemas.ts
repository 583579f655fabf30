import { Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';
import { anyCase } from '../../http/openapi/components.ts';
import { maxUserCharacters, userHeader } from '../end-user.ts';

const Role = anyCase(['USER', 'SYSTEM', 'ASSISTANT'], {
  description: '`USER`, `SYSTEM` for instructions, or `ASSISTANT`. Case-insensitive.',
  examples: ['USER'],
});

export const CompletionRequest = Type.Object(
  {
    id: Type.Optional(Type.String({ description: 'Identifies the request. The answer has the same value.' })),
    messages: Type.Array(
      Type.Object({ role: Role, content: Type.String() }, { $id: 'CompletionMessage', additionalProperties: false }),
      {
        minItems: 1,
        maxItems: 1_000,
        description: 'The chat history.',
      },
    ),
  },
  {
    $id: 'CompletionRequest',
    additionalProperties: false,
    examples: [
      {
        id: 'greeting-1',
        messages: [
          { role: 'SYSTEM', content: 'You answer in one sentence.' },
          { role: 'USER', content: 'What is a change history good for?' },
        ],
      },
    ],
  },
);

export const CompletionResponse = Type.Object(
  {
    id: Type.Optional(Type.String({ description: 'Only if the request has one.' })),
    result: Type.Optional(Type.String({ description: 'The generated text.' })),
    finishReason: Type.Optional(
      Type.Enum(['stop', 'length', 'content_filter', 'other'], {
        type: 'string',
        description:
          'Why the text ends: with `stop` it is complete, with `length` it reached the maximum number of tokens, and with ' +
          '`content_filter` the provider withheld the rest.',
      }),
    ),
  },
  { $id: 'Completion' },
);

export const CompletionEvents = Type.String({
  description:
    'Server-sent events: `token` with `{"text"}` for each part of the text. The last event is `done` with a `Completion` and ' +
    '`usage`, or `error` with an `ErrorMessage`, which has `retryAfter` in seconds if a later call may succeed. What fails ' +
    'before the provider answers has a status of its own.',
});

export const exampleOfEvents = `event: token
data: {"text":"It says who changed what."}

event: done
data: {"id":"greeting-1","result":"It says who changed what.","finishReason":"stop","usage":{"inputTokens":31,"outputTokens":7}}

`;

export const CompletionHeaders = Type.Object({
  [userHeader]: Type.Optional(
    Type.String({
      description: `The end user of the call, for its record: UTF-8 of at most ${maxUserCharacters} characters.`,
    }),
  ),
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Makes the call idempotent for 24 hours: the same key with the same body gives the same result.',
    }),
  ),
});

const Tokens = Type.Object({ inputTokens: Type.Integer(), outputTokens: Type.Integer() }, { $id: 'TokenCounts' });

export const CompletionUsage = Type.Object(
  {
    token: Type.Union([Type.Literal('own'), Type.Literal('shared'), Type.Literal('none')], {
      description: 'The token that completions use: the tenant\u2019s own, the shared one, or none.',
    }),
    limits: Tokens,
    used: Tokens,
    reserved: Tokens,
    left: Tokens,
  },
  { $id: 'CompletionUsage' },
);

export const CompletionsPath = Type.Object({ tenant: TenantName });
