import { type Static, Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';
import { DaysQuery } from '../../http/days.ts';
import { listItem } from '../../http/openapi/components.ts';
import { callOperations } from '../../providers/call-record.ts';
import { failureCauses } from '../../providers/failure-cause.ts';

export const CallsPath = Type.Object({ tenant: TenantName });

const tokens = (description: string) =>
  Type.Optional(Type.Integer({ format: 'int64', minimum: 0, description: `${description} Left out: unknown.` }));

const dollars = '^[0-9]+(\\.[0-9]{1,12})?$';

const Call = Type.Object(
  {
    id: Type.String({ description: 'Ids have the order of time: `sort=_id:DESC` lists the newest first.' }),
    at: Type.String({ format: 'date-time', description: 'When the call began.' }),
    operation: Type.Enum([...callOperations], { type: 'string', description: 'What made the call.' }),
    token: Type.Enum(['own', 'shared'], {
      type: 'string',
      description: "The tenant's own key, or the shared token of the service.",
    }),
    provider: Type.Enum(['openai', 'anthropic', 'google', 'self_hosted'], { type: 'string' }),
    model: Type.String(),
    client: Type.String({ description: 'The id of the client or the key.' }),
    agent: Type.Optional(Type.String({ description: 'The id of the agent. Only of chats.' })),
    user: Type.Optional(Type.String({ description: 'The user that the client named.' })),
    inputTokens: tokens('All input. With the shared token or a budget: what was charged.'),
    cachedTokens: tokens('The part of the input that the provider read from its cache.'),
    cacheWriteTokens: tokens('The part of the input that the provider wrote into its cache.'),
    hourCacheWriteTokens: tokens('The part of the cache writes that is kept for an hour.'),
    outputTokens: tokens('All output. With the shared token or a budget: what was charged.'),
    reasoningTokens: tokens('The part of the output that is reasoning.'),
    firstTokenMs: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Milliseconds until the first part of a stream.' }),
    ),
    durationMs: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Left out: the process ended before the call.' }),
    ),
    finishReason: Type.Optional(
      Type.Enum(['stop', 'length', 'tool_calls', 'content_filter', 'other'], {
        type: 'string',
        description: 'Why the answer ends. Only of calls that were answered.',
      }),
    ),
    cause: Type.Optional(
      Type.Enum([...failureCauses], { type: 'string', description: 'Why there is no whole answer.' }),
    ),
    priceFrom: Type.Optional(
      Type.String({ format: 'date', description: 'The first day of the price. Left out: it has always been so.' }),
    ),
    costUsd: Type.Union([Type.String({ pattern: dollars }), Type.Null()], {
      description: 'US dollars, exactly. null: the model has no price, or the tokens are not known.',
    }),
  },
  {
    $id: 'ModelCall',
    description: 'A call of a model, without any text.',
    examples: [
      {
        id: '01932f0a-1c3d-7a11-9c2b-5f2c9a7be01d',
        at: '2026-09-01T09:30:00.000Z',
        operation: 'chat',
        token: 'own',
        provider: 'anthropic',
        model: 'claude-sonnet-5-5',
        client: 'acme.9f3c5d1e7a2b4c6d8e0f',
        agent: 'helper',
        inputTokens: 812,
        cachedTokens: 512,
        outputTokens: 90,
        firstTokenMs: 420,
        durationMs: 2310,
        finishReason: 'stop',
        costUsd: '0.0022938',
      },
    ],
  },
);

export const CallItem = listItem('ModelCallItem', Call);

const CostsBy = Type.Enum(['day', 'month', 'client', 'agent', 'model', 'provider', 'user'], {
  type: 'string',
  description:
    'What the sums tell apart: the UTC day or month on which calls began, or a member of calls. Default: `day`.',
});
export type CostsBy = Static<typeof CostsBy>;

const only = (what: string) =>
  Type.Optional(
    Type.String({ description: `Only the calls of this ${what}, by day or month. At most one such parameter.` }),
  );

export const CostsQuery = Type.Object({
  ...DaysQuery.properties,
  by: Type.Optional(CostsBy),
  client: only('client'),
  agent: only('agent'),
  model: only('model'),
  provider: only('provider'),
  user: only('user'),
});
export type CostsQuery = Static<typeof CostsQuery>;

const amount = (description: string) => Type.Integer({ format: 'int64', minimum: 0, description });

export const CostsOf = Type.Object(
  {
    name: Type.Union([Type.String(), Type.Null()], {
      description:
        'The day (`2026-09-01`), the month (`2026-09`), or the client, agent, model, provider or user. null: the calls ' +
        'that have none, or, with `others`, those of more names.',
    }),
    others: Type.Optional(
      Type.Literal(true, {
        description:
          'These are sums of calls with other names: a day has sums of 1,000 models and of 1,000 users, and an ' +
          'answer has the 1,000 names that cost most.',
      }),
    ),
    calls: amount('All calls with a record.'),
    inputTokens: amount('All input that is known.'),
    outputTokens: amount('All output that is known.'),
    costUsd: Type.String({ pattern: dollars, description: 'US dollars, exactly: the sum of the known costs.' }),
    callsWithoutCost: amount('Calls of unknown cost (`costUsd` is null). They are not part of `costUsd`.'),
  },
  {
    $id: 'CostsOf',
    examples: [
      {
        name: 'gpt-5.4-mini',
        calls: 1204,
        inputTokens: 812_000,
        outputTokens: 90_500,
        costUsd: '1.0160125',
        callsWithoutCost: 0,
      },
    ],
  },
);

export const CostsAnswer = Type.Array(CostsOf);
