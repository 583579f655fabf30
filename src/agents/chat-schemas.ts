import { Type } from 'typebox';

export const Chat = Type.Object(
  {
    agentId: Type.String({ description: 'The agent that is asked.' }),
    // A lone half of a surrogate pair is not valid text.
    message: Type.String({ minLength: 1, pattern: '^[^\\ud800-\\udfff]*$', description: 'What it is told.' }),
  },
  { examples: [{ agentId: 'price-desk', message: 'Who changed the price of product 17 last week?' }] },
);

export const ChatHeaders = Type.Object({
  'session-id': Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$',
      description: 'A UUID: what was said in its session before is the context. Made where it is left out.',
    }),
  ),
});

export const ChatAnswers = Type.Array(
  Type.Object({
    agentId: Type.String(),
    agentType: Type.String(),
    sessionId: Type.String(),
    message: Type.String({ description: 'The answer.' }),
  }),
);

export const ChatJob = Type.Object({ jobId: Type.String({ description: 'Of `GET /ai-service/{tenant}/jobs/{id}`.' }) });
