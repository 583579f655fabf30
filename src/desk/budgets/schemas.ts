import { type Static, Type } from 'typebox';
import { MetadataInput, shownMetadata } from '../../http/body-members.ts';
import { chosenId, chosenIdInPath, chosenName, nameRules, TenantName } from '../../http/chosen-id.ts';
import { listItem } from '../../http/openapi/components.ts';

/** Budgets per tenant. */
export const maxBudgets = 200;

/** Percentages of a limit that trigger an e-mail. */
export const maxAlerts = 10;

/** The user of a budget that counts for each user separately. */
export const eachUser = '*';

/** Users of such a budget in its use. */
export const maxUsers = 100;

export const BudgetsPath = Type.Object({ tenant: TenantName });
export const BudgetPath = Type.Object({ tenant: TenantName, id: chosenIdInPath('BudgetId', 'monthly') });

const selector = (description: string) => Type.Optional(Type.String({ ...nameRules, description }));

const members = {
  name: Type.Optional(chosenName),
  client: selector(
    'Calls of this client or key alone. The calls of clients and keys count towards those that made them, too.',
  ),
  agent: selector('Calls of chats with this agent alone.'),
  model: selector('Calls of this model alone, as `GET /usage/{tenant}/calls` names it.'),
  user: selector(
    'Calls of this end user alone, as `GET /usage/{tenant}/calls` names them, or `*`: the limit is for each user. It limits the calls of ' +
      'keys that have the user (`user` of a key). Other programs name whom they like: their calls count, and are not refused.',
  ),
  period: Type.Enum(['day', 'month', 'lifetime'], {
    type: 'string',
    description: 'The UTC day or month, or all time.',
  }),
  limitUsd: Type.Optional(
    Type.String({
      pattern: '^(?:0|[1-9][0-9]{0,8})(?:\\.[0-9]{1,12})?$',
      'x-must': 'be US dollars as a decimal text such as "12.50", with at most 12 decimals',
      description: 'US dollars. Either this or `limitTokens`. Calls of models without a price are 400 `price_unknown`.',
    }),
  ),
  limitTokens: Type.Optional(
    Type.Integer({
      format: 'int64',
      minimum: 0,
      maximum: 1_000_000_000_000,
      description: 'Tokens, of input and output together.',
    }),
  ),
};

const alerts = Type.Array(Type.Integer({ minimum: 1, maximum: 100 }), {
  uniqueItems: true,
  maxItems: maxAlerts,
  description:
    'Percents of the limit. Once a period has spent so much, an e-mail goes to the address in the configuration key ' +
    '`notificationEmail`, one for each threshold and period. Default: `[50, 80, 100]`.',
});

const example = { name: 'Support', client: 'acme.9f3c5d1e7a2b4c6d8e0f', period: 'month' as const, limitUsd: '50' };

const Metadata = Type.Object(shownMetadata, { $id: 'BudgetMetadata' });
const metadata = { version: 1, createdAt: '2026-09-01T09:30:00.000Z', modifiedAt: '2026-09-01T09:30:00.000Z' };

const amount = (description: string) =>
  Type.Optional(Type.String({ pattern: '^[0-9]+(\\.[0-9]{1,12})?$', description }));
const tokens = (description: string) => Type.Optional(Type.Integer({ format: 'int64', minimum: 0, description }));

const use = { since: '2026-09-01', spentUsd: '12.0000375', reservedUsd: '0.02' };

const UserUse = Type.Object(
  {
    user: Type.String({ description: 'The end user. An empty text: the calls without one.' }),
    spentUsd: amount('What the calls of the user have cost in the period.'),
    reservedUsd: amount('Max. cost of calls in progress, in addition.'),
    spentTokens: tokens('What the calls of the user have used in the period.'),
    reservedTokens: tokens('Max. tokens of calls in progress, in addition.'),
  },
  { $id: 'BudgetUserUse', examples: [{ user: 'jane', spentUsd: '0.75', reservedUsd: '0' }] },
);

/** The current use of a budget. */
export const BudgetUse = Type.Object(
  {
    since: Type.String({ format: 'date', description: 'The first day of the period. Of a lifetime: 1970-01-01.' }),
    spentUsd: amount('What the calls of the period have cost.'),
    reservedUsd: amount('Max. cost of calls in progress, in addition.'),
    spentTokens: tokens('What the calls of the period have used.'),
    reservedTokens: tokens('Max. tokens of calls in progress, in addition.'),
    users: Type.Optional(
      Type.Array(UserUse, {
        maxItems: maxUsers,
        description:
          `Of a budget of each user, instead of one amount: the ${maxUsers} users with the most use, most first. ` +
          '`GET /usage/{tenant}/costs?by=user` has up to 1,000.',
      }),
    ),
  },
  {
    $id: 'BudgetUse',
    readOnly: true,
    description:
      'How much of it is used, in US dollars or in tokens as the limit is. Only of one budget, and not of a list.',
    examples: [use],
  },
);
export type BudgetUse = Static<typeof BudgetUse>;

/** A budget in a request. */
export const BudgetBody = Type.Object(
  {
    id: chosenId,
    ...members,
    alerts: Type.Optional(alerts),
    use: Type.Optional(BudgetUse),
    metadata: Type.Optional(MetadataInput),
  },
  { $id: 'BudgetInput', additionalProperties: false, examples: [{ id: 'monthly', ...example, alerts: [80, 100] }] },
);
export type BudgetBody = Static<typeof BudgetBody>;

/** A budget in responses. */
export const Budget = Type.Object(
  { id: Type.String(), ...members, alerts, use: Type.Optional(BudgetUse), metadata: Metadata },
  { $id: 'Budget', examples: [{ id: 'monthly', ...example, alerts: [80, 100], use, metadata }] },
);
export type Budget = Static<typeof Budget>;

export const BudgetItem = listItem('BudgetItem', Budget);
export const BudgetCreated = Type.Object({ id: Type.String() }, { $id: 'BudgetCreated' });
