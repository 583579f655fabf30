import { Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';

export const UsagePath = Type.Object({ tenant: TenantName });

const amount = (description: string) => Type.Integer({ format: 'int64', description });

export const UsageOfDay = Type.Object(
  {
    date: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'The UTC day.' }),
    entries: amount('Changes that Annals recorded on this day. The time of the changes does not matter. Exact.'),
    bytes: amount('The size of these entries in bytes of UTF-8. Exact.'),
    requests: amount('Requests with a valid token and scope, with any answer. Delayed by some seconds.'),
    inputTokens: amount('Input tokens of all calls of models, as the quota and the providers count them. Exact.'),
    outputTokens: amount('Output tokens of all calls of models, as the quota and the providers count them. Exact.'),
  },
  {
    $id: 'UsageOfDay',
    examples: [
      { date: '2026-09-01', entries: 1204, bytes: 482_113, requests: 5310, inputTokens: 81_200, outputTokens: 9_050 },
    ],
  },
);

export const UsageAnswer = Type.Array(UsageOfDay);
