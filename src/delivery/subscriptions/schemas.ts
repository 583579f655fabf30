import { type Static, type TSchema, Type } from 'typebox';
import { durationPattern } from '../../core/duration.ts';
import type { ShownActors, WrittenActors } from '../../core/written-restriction.ts';
import { MetadataInput, shownActors, shownMetadata, writtenActors } from '../../http/body-members.ts';
import { chosenId, chosenIdInPath, chosenName, TenantName } from '../../http/chosen-id.ts';
import { listItem } from '../../http/openapi/components.ts';
import { failureReasons, type TargetMembers } from '../targets/target.ts';

/** Subscriptions of one tenant. */
export const maxSubscriptions = 50;
export const maxHidden = 100;

export const SubscriptionsPath = Type.Object({ tenant: TenantName });
export const AttemptPath = Type.Object({
  tenant: TenantName,
  id: chosenIdInPath('SubscriptionId', 'prices-to-erp'),
  attempt: Type.String({ $id: 'AttemptId', pattern: '^[1-9][0-9]{0,14}$', 'x-must': 'be the id of an attempt' }),
});
export const SubscriptionPath = Type.Object({
  tenant: TenantName,
  id: chosenIdInPath('SubscriptionId', 'prices-to-erp'),
});

const inputs = {
  name: chosenName,
  enabled: Type.Boolean({ description: 'Default: true. A subscription that is not enabled is paused.' }),
  q: Type.String({
    description:
      'A query of the change history: what is sent. Default: every change. It has no default window of time.',
  }),
  from: Type.String({
    maxLength: 500,
    description:
      'Where the subscription begins: `now` (default), `start` (the oldest change that is kept), or a cursor of the feed. It cannot be ' +
      'changed later.',
  }),
  maxAge: Type.String({
    pattern: durationPattern,
    'x-must': 'be an ISO 8601 duration in weeks, or in days and time: P1D, PT90M, P2W',
    description:
      'A change that was older than this when it was recorded is not sent. Annals counts it as skipped. Default: what suits the target.',
  }),
  hide: Type.Array(
    Type.String({
      pattern: '^[^\\u0000-\\u001f]{1,200}$',
      'x-must': 'have 1 to 200 characters and no control characters',
    }),
    {
      maxItems: maxHidden,
      uniqueItems: true,
      description:
        'Paths whose values are masked in what is sent, also inside of whole values; `*` stands for any characters: `card.*`.',
    },
  ),
  actors: writtenActors(
    'What is sent of who made a change. `names` or `true` (default): the name of the actor. `all`: also `actorId`, `onBehalfOf` and ' +
      '`correlationId`, and `q` may have terms on them. `false`: nothing.',
  ),
};

const count = (description: string) => Type.Integer({ minimum: 0, description, readOnly: true });
const time = Type.String({ format: 'date-time' });

/** Read-only members. */
const live = {
  state: Type.Enum(['active', 'retrying', 'paused', 'suspended'], {
    type: 'string',
    readOnly: true,
    description:
      '`retrying`: the target did not take the last delivery. `paused`: by a client, or for the `reason`. `suspended`: the target is ' +
      'gone, or nothing but failures for 5 days.',
  }),
  reason: Type.Optional(
    Type.Enum(['client', 'disabled', 'maker', 'backup', 'restored', 'gone', 'failures'], {
      type: 'string',
      readOnly: true,
      description:
        'Why it is paused or suspended: by a client; because it is not enabled; because its maker lost the scopes; ' +
        'because a backup was restored (`backup`), or its position was lost in a restore (`restored`); because the target ' +
        'answered 410, or a bucket has another object of that name; because of failures.',
    }),
  ),
  maker: Type.String({
    readOnly: true,
    description: 'The id of the client that made or last changed it, whose scopes count.',
  }),
  makerName: Type.Optional(
    Type.String({ readOnly: true, description: 'The name of that client, or of the person who signed in as it.' }),
  ),
  cursor: Type.String({ readOnly: true, description: 'How far the history has been read, as a cursor of the feed.' }),
  pending: count('Changes that were read and are still to be delivered.'),
  parked: count('Changes that could not be delivered. Annals keeps them for 30 days.'),
  matched: count('All changes that were read for the subscription, each of which is in one of the other counts.'),
  delivered: count('Changes that were delivered.'),
  skipped: count('Changes that were older than `maxAge` when they were recorded.'),
  expired: count('Changes that retention dropped before they were read, whether they would have matched or not.'),
  dropped: count('Parked changes that were deleted, and changes that retention dropped before they were delivered.'),
  replay: Type.Optional(
    Type.Object(
      { left: Type.Integer({ minimum: 0, description: 'Positions that are still to be read.' }) },
      { $id: 'ReplayUnderWay', readOnly: true, additionalProperties: false },
    ),
  ),
  lastDelivery: Type.Optional(
    Type.Object(
      { at: time, status: Type.Optional(Type.Integer()), duration: Type.Optional(Type.Integer()) },
      { $id: 'LastDelivery', readOnly: true, additionalProperties: false },
    ),
  ),
  lastError: Type.Optional(
    Type.Object(
      { at: time, status: Type.Optional(Type.Integer()), message: Type.String() },
      { $id: 'LastDeliveryError', readOnly: true, additionalProperties: false },
    ),
  ),
};

const Metadata = Type.Object(shownMetadata, { $id: 'SubscriptionMetadata' });

const example = {
  name: 'Prices to the ERP',
  q: 'entity:product path:price',
  hide: ['card.*'],
  target: { type: 'webhook', url: 'https://erp.example.com/changes' },
};
const shownExample = {
  id: 'prices-to-erp',
  ...example,
  enabled: true,
  from: 'now',
  maxAge: 'P1D',
  state: 'active',
  maker: 'acme.9f3c',
  makerName: 'Jane Doe',
  cursor: 'AUYx',
  pending: 0,
  parked: 0,
  matched: 12,
  delivered: 12,
  skipped: 0,
  expired: 0,
  dropped: 0,
  metadata: { version: 1, createdAt: '2026-09-01T09:30:00.000Z', modifiedAt: '2026-09-01T09:30:00.000Z' },
};

/** The schema of each target type. */
export type TargetSchemas = readonly [TSchema, ...TSchema[]];

/** The schemas of subscriptions with these target types. */
export function subscriptionSchemas([first, ...more]: TargetSchemas) {
  const target = Type.Unsafe<TargetMembers>(more.length === 0 ? first : Type.Union([first, ...more]));
  const { name, enabled, q, from, maxAge, hide, actors } = inputs;
  // Accepted in requests and ignored.
  const optionalLive = Object.fromEntries(
    Object.keys(live).map((key) => [key, Type.Optional(Type.Unknown({ readOnly: true }))]),
  );
  const Body = Type.Object(
    {
      id: chosenId,
      name,
      enabled: Type.Optional(enabled),
      q: Type.Optional(q),
      from: Type.Optional(from),
      maxAge: Type.Optional(maxAge),
      hide: Type.Optional(hide),
      actors: Type.Optional(actors),
      target,
      ...(optionalLive as Record<never, TSchema>),
      metadata: Type.Optional(MetadataInput),
    },
    { $id: 'SubscriptionInput', additionalProperties: false, examples: [example] },
  );
  const Shown = Type.Object(
    {
      id: Type.String(),
      name,
      enabled,
      q,
      from,
      maxAge: Type.Optional(maxAge),
      hide: Type.Optional(hide),
      actors: Type.Optional(shownActors('As it was written, with `true` for `names`.')),
      target,
      ...live,
      metadata: Metadata,
    },
    { $id: 'Subscription', examples: [shownExample] },
  );
  return { Body, Shown, Item: listItem('SubscriptionItem', Shown) };
}

/** A request body, without the read-only members. */
export interface SubscriptionBody {
  readonly id?: string | undefined;
  readonly name: string;
  readonly enabled?: boolean | undefined;
  readonly q?: string | undefined;
  readonly from?: string | undefined;
  readonly maxAge?: string | undefined;
  readonly hide?: readonly string[] | undefined;
  readonly actors?: WrittenActors | undefined;
  readonly target: TargetMembers;
  readonly metadata?: Static<typeof MetadataInput> | undefined;
}

/** A subscription as its stored document. */
export interface SubscriptionDocument {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly q: string;
  readonly from: string;
  readonly maxAge?: string | undefined;
  readonly hide?: readonly string[] | undefined;
  /** Left out: as `true`. */
  readonly actors?: ShownActors | undefined;
  /** With masks in place of secrets. */
  readonly target: TargetMembers;
  readonly metadata: { readonly version: number; readonly createdAt: string; readonly modifiedAt: string };
}

const keys = {
  secret: Type.Optional(Type.String({ description: 'What signatures are made with: `whsec_…`. Shown this once.' })),
  publicKey: Type.Optional(Type.String({ description: 'What signatures are checked with: `whpk_…`.' })),
};

export const SubscriptionCreated = Type.Object({ id: Type.String(), ...keys }, { $id: 'SubscriptionCreated' });
export const RotatedKey = Type.Object(keys, { $id: 'RotatedKey' });

const outcome = Type.Enum(['delivered', 'failed', 'refused', 'suspended'], {
  type: 'string',
  description: '`refused`: no connection could be made. `suspended`: the target answered 410.',
});

/** An attempt, without the content that was sent. */
const attemptMembers = {
  outcome,
  status: Type.Optional(Type.Integer({ description: 'Of the answer, if there was one.' })),
  duration: Type.Optional(Type.Integer({ minimum: 0, description: 'Milliseconds.' })),
  reason: Type.Optional(
    Type.Enum([...failureReasons], {
      type: 'string',
      description:
        'Why there was no answer. `no_connection`: the address is refused or cannot be reached; both read the same. `tls`: no secure ' +
        'connection. `closed`: the target closed the connection. `upgrade`: it switched protocols.',
    }),
  ),
  error: Type.Optional(Type.String()),
  answer: Type.Optional(
    Type.String({ description: 'The first KiB of the answer. Not kept of a target in a private network.' }),
  ),
};

export const ShownRequest = Type.Object(
  {
    method: Type.String(),
    url: Type.String(),
    headers: Type.Record(Type.String(), Type.String(), {
      description: "With masks in place of the subscription's own headers and of the signature.",
    }),
    body: Type.String(),
  },
  {
    $id: 'SentRequest',
    examples: [
      {
        method: 'POST',
        url: 'https://erp.example.com/changes',
        headers: { 'content-type': 'application/json', 'webhook-id': 'chg_3f0c', 'webhook-signature': '********' },
        body: '{"type":"change.update"}',
      },
    ],
  },
);

export const TestResult = Type.Object(
  { ...attemptMembers, request: Type.Optional(ShownRequest) },
  { $id: 'DeliveryTest', examples: [{ outcome: 'delivered', status: 204, duration: 41, answer: '' }] },
);

export const Attempt = Type.Object(
  {
    id: Type.String(),
    at: time,
    kind: Type.Enum(['live', 'replay', 'test'], { type: 'string' }),
    first: Type.Optional(Type.Integer({ description: 'The position of the first change.' })),
    last: Type.Optional(Type.Integer({ description: 'The position of the last change.' })),
    ...attemptMembers,
  },
  {
    $id: 'DeliveryAttempt',
    examples: [
      {
        id: '7',
        at: '2026-09-01T09:30:00.000Z',
        kind: 'live',
        first: 41,
        last: 41,
        outcome: 'delivered',
        status: 204,
        duration: 41,
        answer: '',
      },
    ],
  },
);
export const AttemptItem = listItem('DeliveryAttemptItem', Attempt);

const moment = Type.String({
  maxLength: 500,
  description: 'A cursor of the feed, or a time of recording: `2026-09-01T09:30:00Z`.',
});

export const ReplayBody = Type.Object(
  {
    from: Type.Optional(moment),
    to: Type.Optional(moment),
    parked: Type.Optional(
      Type.Literal(true, { description: 'Sends what is parked once more. Without `from` and `to`.' }),
    ),
  },
  {
    $id: 'ReplayInput',
    additionalProperties: false,
    examples: [{ from: '2026-09-01T00:00:00Z', to: '2026-09-02T00:00:00Z' }, { parked: true }],
  },
);
export type ReplayBody = Static<typeof ReplayBody>;

export const ResumeBody = Type.Object(
  {
    from: Type.Optional(
      Type.String({
        maxLength: 500,
        description:
          '`start`, `now` or a cursor of the feed. Only for a subscription whose position was lost in a restore.',
      }),
    ),
  },
  { $id: 'ResumeInput', additionalProperties: false, examples: [{}, { from: 'start' }] },
);

export const PreviewQuery = Type.Object({
  after: Type.Optional(
    Type.String({ maxLength: 500, description: 'The `cursor` of the answer before. Default: a day ago.' }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })),
});
