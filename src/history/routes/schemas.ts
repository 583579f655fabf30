import { type Static, type TSchema, Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';
import { queryInteger } from '../../http/query-parameters.ts';

const PathValueChange = Type.Object(
  {
    before: Type.Optional(Type.Unknown({ description: 'The value before the change; omitted when unavailable.' })),
    after: Type.Optional(Type.Unknown({ description: 'The value after the change; omitted when unavailable.' })),
  },
  {
    $id: 'PathValueChange',
    description: 'Any JSON values, as the client wrote them: numbers keep every digit.',
  },
);

const RelatedItem = Type.Object(
  {
    entity: Type.String({ description: 'The type of the related entity, for example `group` or `customer`.' }),
    entityId: Type.String({ description: 'The identifier of the related entity.' }),
  },
  { $id: 'RelatedItem' },
);

const Person = Type.Object(
  {
    name: Type.Optional(Type.String({ description: 'A display name.' })),
    id: Type.Optional(Type.String({ description: 'The identifier.' })),
  },
  {
    $id: 'Person',
    description:
      'For whom the actor made the change, if known: support for a customer, say. It has at least one member.',
  },
);

const RecordedBy = Type.Object(
  {
    way: Type.Union(['service', 'import', 'recorder', 'capture', 'relay'].map((way) => Type.Literal(way))),
    by: Type.Optional(Type.String({ description: 'The client or the capture.' })),
    iss: Type.Optional(
      Type.String({
        description:
          "Of a person who signed in with a company's account and wrote the document: the address of the OpenID provider.",
      }),
    ),
    sub: Type.Optional(Type.String({ description: 'Of such a person: what the provider knows them by.' })),
  },
  {
    $id: 'RecordedBy',
    description: 'How Annals recorded the change. Only with `context=true`, and if known.',
  },
);

export const ChangelogChangeItem = Type.Object(
  {
    at: Type.String({ format: 'date-time', description: 'When the change occurred: ISO 8601, UTC, milliseconds.' }),
    type: Type.Union([Type.Literal('create'), Type.Literal('update'), Type.Literal('delete')]),
    entity: Type.String({ description: 'The type of the changed document.' }),
    entityId: Type.String({ description: 'The identifier of the changed document.' }),
    name: Type.Optional(Type.String({ description: 'The display name of the document, if known.' })),
    paths: Type.Record(Type.String(), PathValueChange, {
      description: 'The values that changed, by the path of the field.',
    }),
    schemaVersion: Type.Optional(Type.String({ description: 'The version of the format of the document, if known.' })),
    actor: Type.Optional(
      Type.String({
        description:
          'Who made the change: a name, or `system`, `external`, `unknown`. Missing only for credentials that show no actors.',
      }),
    ),
    actorId: Type.Optional(
      Type.String({ description: 'Identifies the actor, if known: names change, and people share them.' }),
    ),
    onBehalfOf: Type.Optional(Person),
    correlationId: Type.Optional(
      Type.String({
        description:
          'Changes of one request or one transaction have the same. It groups them and proves nothing. Sealed for restricted readers: equal ' +
          'where the id is, and a term of `q` for this reader alone.',
      }),
    ),
    related: Type.Array(RelatedItem, { description: 'The documents that this change concerns.' }),
    context: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'The circumstances of the change. Only with `context=true`, and if there are any.',
      }),
    ),
    recordedBy: Type.Optional(RecordedBy),
    erased: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'What of the change was erased because a person asked for it: `actor`, `actorId`, `onBehalfOf`, `onBehalfOf.name`, `entityId`, `name`, `related`, `context`, `recordedBy`, or `paths.` and a path. The values at these paths are `[erased]`. Restricted readers get the parts that they see.',
      }),
    ),
    ref: Type.Optional(
      Type.String({
        description: 'Opaque and constant. `…/entries` answers the change with this ref. Only with `ref=true`.',
      }),
    ),
    cut: Type.Optional(
      Type.Array(Type.String(), {
        description: 'The paths with a shortened value. Only with `valueLimit`, and if there are any.',
      }),
    ),
  },
  { $id: 'ChangeEntry' },
);

const { context: _context, recordedBy: _recordedBy, ...membersOfAll } = ChangelogChangeItem.properties;

export const ViewerChange = Type.Object(membersOfAll, { $id: 'ViewerChange' });

/** Spec: change history response. */
function historyPage(item: TSchema, $id: string) {
  return Type.Object(
    {
      items: Type.Array(item, { description: 'Newest first.' }),
      page: Type.Integer({ minimum: 1 }),
      size: Type.Integer({ minimum: 1, maximum: 100 }),
      totalElements: Type.Integer({ minimum: 0, format: 'int64', description: 'Exact, in the snapshot of the items.' }),
      totalPages: Type.Integer({ minimum: 0 }),
    },
    {
      $id,
      examples: [
        {
          items: [
            {
              at: '2026-09-01T09:30:00.000Z',
              type: 'update',
              entity: 'product',
              entityId: 'p-17',
              name: 'Desk lamp',
              paths: { 'price.amount': { before: 39.9, after: 34.9 } },
              actor: 'Jane Doe',
              related: [],
            },
          ],
          page: 1,
          size: 20,
          totalElements: 1,
          totalPages: 1,
        },
      ],
    },
  );
}

export const ChangelogHistoryResponse = historyPage(ChangelogChangeItem, 'ChangeHistoryPage');
export const ViewerHistoryPage = historyPage(ViewerChange, 'ViewerHistoryPage');

export const HistoryPath = Type.Object({ tenant: TenantName });

export const withContext = Type.Optional(
  Type.Union([Type.Literal('true'), Type.Literal('false')], {
    type: 'string',
    description:
      'With `true`, entries have their context and how they were recorded. Needs changelog.changelog_manage.',
    'x-message': 'context must be true or false',
  }),
);

const valueLimit = Type.Optional(
  queryInteger({
    minimum: 256,
    maximum: 2_147_483_647,
    message: 'valueLimit must be between 256 and 2147483647',
    description: 'In bytes. A longer value becomes a text with its first part, and `cut` has its path.',
  }),
);

export const EntryQuery = Type.Object({
  ref: Type.String({ description: 'The `ref` of the change.' }),
  context: withContext,
  valueLimit,
});

const size = Type.Optional(
  queryInteger({ minimum: 1, maximum: 100, default: 20, message: 'size must be between 1 and 100' }),
);

export const HistoryQuery = Type.Object({
  context: withContext,
  ref: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      type: 'string',
      description: 'With `true`, entries have their `ref`.',
      'x-message': 'ref must be true or false',
    }),
  ),
  valueLimit,
  q: Type.Optional(
    Type.String({
      description:
        'A query, as docs/query-language.md describes it. Without a lower bound of `occurredAt`: the last 30 days.',
      examples: ['entity:product type:update', 'actor:Jane* entity:order'],
    }),
  ),
  page: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: 2_147_483_647,
      default: 1,
      message: 'page must be >= 1',
      messageAbove: 'page must be <= 2147483647',
    }),
  ),
  size,
});

export type HistoryQueryParameters = Static<typeof HistoryQuery>;
