import { type Static, Type } from 'typebox';

export const alertLimits = { count: 1_000, minutes: 1_440 } as const;

export const EmailTarget = Type.Object(
  {
    type: Type.Literal('email'),
    to: Type.String({
      maxLength: 254,
      pattern: '^[^\\s@<>()[\\],;:"\\\\]+@[^\\s@<>()[\\],;:"\\\\]+$',
      'x-must': 'be one e-mail address',
      description: 'One address.',
    }),
    threshold: Type.Optional(
      Type.Object(
        {
          count: Type.Integer({ minimum: 1, maximum: alertLimits.count, description: 'So many changes …' }),
          minutes: Type.Integer({ minimum: 1, maximum: alertLimits.minutes, description: '… within so many minutes.' }),
        },
        { $id: 'AlertThreshold', additionalProperties: false, description: 'What raises the alert. Default: 1 in 1.' },
      ),
    ),
    values: Type.Optional(Type.Boolean({ description: 'Whether the e-mail shows values. Default: false.' })),
  },
  { $id: 'EmailTarget', additionalProperties: false },
);
export type EmailMembers = Static<typeof EmailTarget>;
