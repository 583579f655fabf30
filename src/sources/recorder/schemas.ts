import { Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';
import { maxMaskedPath } from '../../recording/masked-differences.ts';
import { maxCorrelationCharacters, maxNameCharacters } from '../../recording/member-faults.ts';
import { maxChanges } from './limits.ts';

export const ChangesPath = Type.Object({ tenant: TenantName });

export const ChangesQuery = Type.Object({
  strict: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      type: 'string',
      description: 'With `true`, the recorder refuses the whole request (422) if it has to reject one change.',
      'x-message': 'strict must be true or false',
    }),
  ),
  correlation: Type.Optional(
    Type.Literal('request', {
      type: 'string',
      description:
        'With `request`, all changes of the request without a `correlationId` share one: the trace id of the header ' +
        '`traceparent`, or else the id of the request.',
      'x-message': 'correlation must be request',
    }),
  ),
});

const RecordedItem = Type.Object(
  { entity: Type.String(), entityId: Type.String() },
  { $id: 'RecordedRelatedItem', additionalProperties: false },
);

const OnBehalfOf = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: maxNameCharacters })),
    id: Type.Optional(Type.String({ minLength: 1, maxLength: maxNameCharacters })),
  },
  {
    $id: 'RecordedOnBehalfOf',
    additionalProperties: false,
    minProperties: 1,
    description: 'For whom the actor made the change. Needs recorder.actor_set.',
  },
);

export const RecordedChange = Type.Object(
  {
    id: Type.String({
      description: 'Identifies the change together with `at`, so that a repeated request records it only once.',
    }),
    op: Type.Union(
      ['insert', 'create', 'update', 'replace', 'delete'].map((op) => Type.Literal(op)),
      { description: '`create` means the same as `insert`, and `replace` the same as `update`.' },
    ),
    entity: Type.String({ description: 'The type of the changed document.' }),
    entityId: Type.String(),
    at: Type.String({
      format: 'date-time',
      description: 'The time of the change: RFC 3339, at most 5 minutes in the future.',
    }),
    name: Type.Optional(Type.String({ description: 'The display name of the document.' })),
    actor: Type.Optional(
      Type.String({ description: 'Who made the change. Needs recorder.actor_set. Default: the name of the client.' }),
    ),
    actorId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: maxNameCharacters,
        description: 'Identifies the actor. Needs recorder.actor_set. Without `actor`, the name is `unknown`.',
      }),
    ),
    onBehalfOf: Type.Optional(OnBehalfOf),
    correlationId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: maxCorrelationCharacters,
        description:
          'The same for all changes of one request or task. Default: the trace id of the header `traceparent` for a ' +
          'request with one change, and that of the attribute `traceparent` for a CloudEvent.',
      }),
    ),
    schemaVersion: Type.Optional(Type.String()),
    related: Type.Optional(Type.Array(RecordedItem)),
    context: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'At most 4 KiB and 4 levels.' })),
    before: Type.Optional(Type.Unknown({ description: 'The document before the change.' })),
    after: Type.Optional(Type.Unknown({ description: 'The document after the change.' })),
    masked: Type.Optional(
      Type.Array(Type.String({ maxLength: maxMaskedPath }), {
        description: 'The paths of masked values that differed. Both documents have `"********"` there.',
      }),
    ),
  },
  {
    $id: 'RecordedChange',
    additionalProperties: false,
    examples: [
      {
        id: 'lamp-2',
        op: 'update',
        entity: 'product',
        entityId: 'desk-lamp',
        at: '2026-11-15T14:05:12.250Z',
        before: { price: 39.9 },
        after: { price: 34.9 },
      },
    ],
  },
);

const whoAttribute = 'Who made the change, if `data` has no `actor`, `actorId` and `onBehalfOf`.';

const ChangeEvent = Type.Object(
  {
    specversion: Type.Literal('1.0'),
    id: Type.String({ minLength: 1, description: 'Identifies the change together with `source`.' }),
    source: Type.String({ minLength: 1 }),
    type: Type.String({ minLength: 1 }),
    time: Type.Optional(
      Type.String({ format: 'date-time', description: 'The time of the change, if `data` has no `at`.' }),
    ),
    actor: Type.Optional(Type.String({ description: whoAttribute })),
    actorid: Type.Optional(Type.String({ description: whoAttribute })),
    onbehalfofname: Type.Optional(Type.String({ description: whoAttribute })),
    onbehalfofid: Type.Optional(Type.String({ description: whoAttribute })),
    correlationid: Type.Optional(Type.String({ description: 'The `correlationId`, if `data` has none.' })),
    traceparent: Type.Optional(
      Type.String({ description: 'W3C Trace Context. Its trace id is the default for `correlationId`.' }),
    ),
    data: Type.Record(Type.String(), Type.Unknown(), {
      description: 'The members of a `RecordedChange`, or an event of Debezium.',
    }),
  },
  { $id: 'ChangeEvent', additionalProperties: true, description: 'A CloudEvent. It may have any other attributes.' },
);

const Lines = Type.String({ description: 'A `RecordedChange` as JSON on each line.' });

/** Bodies by media type, for the OpenAPI document. */
export const describedBodies = {
  'application/json': Type.Union([RecordedChange, Type.Array(RecordedChange, { maxItems: maxChanges })]),
  'application/x-ndjson': Lines,
  'application/ndjson': Lines,
  'application/jsonl': Lines,
  'application/cloudevents+json': ChangeEvent,
  'application/cloudevents-batch+json': Type.Array(ChangeEvent, { maxItems: maxChanges }),
};

const count = (description: string) => Type.Integer({ minimum: 0, description });

export const RecordedCounts = Type.Object(
  {
    read: count('Changes in the request, the sum of the other counts.'),
    recorded: count('New entries.'),
    unchanged: count('Updates without a change.'),
    duplicate: count('Already recorded.'),
    expired: count('Older than the retention of the tenant.'),
    ignored: count('Excluded by the mapping, or events without a change.'),
    rejected: Type.Array(
      Type.Object(
        { index: Type.Integer({ minimum: 0, description: 'From 0.' }), reason: Type.String() },
        { $id: 'RejectedChange' },
      ),
      { description: 'Changes that Annals can never record. It stores them: do not send them again.' },
    ),
  },
  {
    $id: 'RecordedCounts',
    examples: [{ read: 1, recorded: 1, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: [] }],
  },
);
