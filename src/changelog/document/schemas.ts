import { Type } from 'typebox';
import { queryInteger } from '../../http/query-number.ts';

export const DocumentQuery = Type.Object({
  entity: Type.String({ description: 'The type of the document.' }),
  entityId: Type.String({ description: 'The identifier of the document.' }),
  at: Type.Optional(
    Type.String({
      description: 'The moment (RFC 3339, with `Z` or an offset); changes at this moment are included. Default: now.',
      examples: ['2026-09-01T09:30:00Z'],
    }),
  ),
  changes: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: 2_147_483_647,
      message: 'changes must be >= 1',
      messageAbove: 'changes must be <= 2147483647',
      description: 'In place of `at`: the document after so many of its changes.',
    }),
  ),
});

export const DocumentAnswer = Type.Object(
  {
    entity: Type.String(),
    entityId: Type.String(),
    at: Type.String({ format: 'date-time', description: 'The moment; with `changes`, that of the last of these.' }),
    exists: Type.Boolean({ description: 'False before its creation and after its deletion.' }),
    complete: Type.Boolean({
      description: 'Whether the document is exactly what was written. False where a part of its history is not known.',
    }),
    name: Type.Optional(Type.String({ description: 'The display name, where known.' })),
    document: Type.Optional(
      Type.Unknown({
        description:
          'The document. Numbers keep every digit; the order of keys is not kept. Left out where it does not exist.',
      }),
    ),
    changes: Type.Integer({ minimum: 0, format: 'int64', description: 'Its changes up to then that are still kept.' }),
    lastChange: Type.Optional(
      Type.Object(
        {
          at: Type.String({ format: 'date-time' }),
          type: Type.Union([Type.Literal('create'), Type.Literal('update'), Type.Literal('delete')]),
          actor: Type.String(),
        },
        { $id: 'LastChange', description: 'The last of these changes; left out where there is none.' },
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
