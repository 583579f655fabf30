import { Type } from 'typebox';
import { queryInteger } from '../../http/query-parameters.ts';

export const DocumentQuery = Type.Object({
  entity: Type.String({ description: 'The type of the document.' }),
  entityId: Type.String({ description: 'The identifier of the document.' }),
  at: Type.Optional(
    Type.String({
      description: 'The moment (RFC 3339, with `Z` or an offset), including changes at this moment. Default: now.',
      examples: ['2026-09-01T09:30:00Z'],
    }),
  ),
  changes: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: 2_147_483_647,
      message: 'changes must be >= 1',
      messageAbove: 'changes must be <= 2147483647',
      description: 'Instead of `at`: the number of changes after which the document is rebuilt.',
    }),
  ),
});

export const DocumentAnswer = Type.Object(
  {
    entity: Type.String(),
    entityId: Type.String(),
    at: Type.String({
      format: 'date-time',
      description: 'The moment. With `changes`, the time of the last of these changes.',
    }),
    exists: Type.Boolean({ description: 'False before its creation and after its deletion.' }),
    complete: Type.Boolean({
      description: 'Whether the document is exactly as it was written. False if a part of its history is missing.',
    }),
    name: Type.Optional(Type.String({ description: 'The display name, if known.' })),
    document: Type.Optional(
      Type.Unknown({
        description: 'The document, if it exists. Numbers keep every digit. Keys do not keep their order.',
      }),
    ),
    changes: Type.Integer({
      minimum: 0,
      format: 'int64',
      description: 'The number of its changes up to this moment that the service keeps.',
    }),
    lastChange: Type.Optional(
      Type.Object(
        {
          at: Type.String({ format: 'date-time' }),
          type: Type.Union([Type.Literal('create'), Type.Literal('update'), Type.Literal('delete')]),
          actor: Type.String(),
        },
        { $id: 'LastChange', description: 'The last of these changes, if there is one.' },
      ),
    ),
  },
  {
    $id: 'DocumentAtMoment',
    examples: [
      {
        entity: 'product',
        entityId: 'p-17',
        at: '2026-09-01T09:30:00.000Z',
        exists: true,
        complete: true,
        name: 'Desk lamp',
        document: { price: { amount: 34.9, currency: 'EUR' } },
        changes: 3,
        lastChange: { at: '2026-08-29T14:02:11.120Z', type: 'update', actor: 'Jane Doe' },
      },
    ],
  },
);
