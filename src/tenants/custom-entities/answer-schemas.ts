import { Type } from 'typebox';
import { shownMetadata } from '../../http/body-members.ts';
import { listItem } from '../../http/openapi/components.ts';

const Metadata = Type.Object(shownMetadata, {
  $id: 'DocumentMetadata',
  additionalProperties: true,
  description: 'May have any other members.',
});

const metadata = { version: 1, createdAt: '2026-09-01T09:30:00.000Z', modifiedAt: '2026-09-01T09:30:00.000Z' };

/** A custom entity type in responses (contract 9). */
export const StoredType = Type.Object(
  {
    id: Type.String(),
    name: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'By language.' })),
    jsonSchema: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'The JSON Schema 2020-12 of the instances.',
      }),
    ),
    metadata: Metadata,
  },
  {
    $id: 'CustomEntityType',
    additionalProperties: true,
    description: 'May have any other members.',
    examples: [{ id: 'WARRANTY_CLAIM', name: { en: 'Warranty claim' }, metadata }],
  },
);

/** An instance in responses: every value verbatim. */
export const StoredInstance = Type.Object(
  {
    id: Type.String(),
    name: Type.Optional(Type.Unknown({ description: 'A text, or a map by language.' })),
    metadata: Metadata,
  },
  {
    $id: 'CustomInstance',
    additionalProperties: true,
    description: 'May have any other members, as the client wrote them: numbers keep every digit.',
    examples: [{ id: 'claim-17', name: { en: 'Claim 17' }, metadata, orderId: 'o-4711', amount: 19.9 }],
  },
);

export const InstanceItem = listItem('CustomInstanceItem', StoredInstance);
