import { Type } from 'typebox';
import { unsupportedOfChats } from './unsupported-members.ts';

const exampleSession = '0b0f5f0e-8a36-4d2e-9c0b-4d8a52b5a1f7';

export const Chat = Type.Object(
  {
    agentId: Type.String({ description: 'The id of the agent.' }),
    // A lone surrogate is not valid text.
    message: Type.String({
      minLength: 1,
      pattern: '^[^\\ud800-\\udfff]*$',
      'x-must': 'be a string without lone surrogates',
      description: 'The message to the agent.',
    }),
    ...unsupportedOfChats,
  },
  {
    $id: 'ChatRequest',
    additionalProperties: false,
    examples: [{ agentId: 'price-desk', message: 'Who changed the price of product 17 last week?' }],
  },
);

export const ChatHeaders = Type.Object({
  'session-id': Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$',
      'x-must': 'be a UUID',
      description:
        'A UUID. The earlier messages of the session are the context. Without it the service starts a new session.',
    }),
  ),
});

export const ChatAnswers = Type.Array(
  Type.Object(
    {
      agentId: Type.String(),
      agentType: Type.Enum(['generic'], { type: 'string' }),
      sessionId: Type.String(),
      message: Type.String({ description: 'The answer.' }),
    },
    { $id: 'ChatAnswer' },
  ),
  {
    examples: [[{ agentId: 'price-desk', agentType: 'generic', sessionId: exampleSession, message: 'Jane Doe did.' }]],
  },
);

export const ChatEvents = Type.String({
  description:
    'Server-sent events: `token` with `{"text"}` for each part of the answer. The last event is `done` with a `ChatAnswer`, ' +
    'or `error` with an `ErrorMessage`, which has `retryAfter` in seconds if a later call may succeed.',
});

export const exampleOfEvents = `event: token
data: {"text":"Jane Doe did."}

event: done
data: {"agentId":"price-desk","agentType":"generic","sessionId":"${exampleSession}","message":"Jane Doe did."}

`;

export const ChatJob = Type.Object({ jobId: Type.String() }, { $id: 'JobCreated' });
