import { Type } from 'typebox';
import { MetadataInput, metadataMembers, shownMetadata, unsupportedMember } from '../../http/body-members.ts';
import { shownText, TenantName } from '../../http/chosen-id.ts';
import { listItem } from '../../http/openapi/components.ts';
import { filterParameter, pagingParameters } from '../../pagination/parameters.ts';
import { maxOperations } from './patch-document.ts';
import { reservedInstanceId } from './refusals.ts';

const TypeId = Type.String({
  $id: 'CustomEntityTypeId',
  description: 'Capital letters, digits and `_`, a letter first.',
  examples: ['WARRANTY_CLAIM'],
});
const InstanceId = Type.String({
  $id: 'InstanceId',
  description: 'At most 255 bytes of UTF-8.',
  examples: ['claim-17'],
});

export const TypesPath = Type.Object({ tenant: TenantName });
export const TypePath = Type.Object({ tenant: TenantName, type: TypeId });
export const InstancePath = Type.Object({ tenant: TenantName, type: TypeId, id: InstanceId });

const InstanceMetadata = Type.Object(metadataMembers, {
  $id: 'InstanceMetadataInput',
  additionalProperties: true,
  description: 'The service stores other members unchanged.',
});

const mapByLanguage = 'be a map by language, such as {"en": "Warranty claim"}';

const Texts = (options: object, text: Partial<typeof shownText> = {}) =>
  Type.Record(Type.String({ pattern: '^[A-Za-z0-9_-]{1,35}$' }), Type.String(text), {
    additionalProperties: false,
    ...options,
  });

const examplesOfTypes = [
  {
    id: 'WARRANTY_CLAIM',
    name: { en: 'Warranty claim' },
    jsonSchema: { type: 'object', properties: { orderId: { type: 'string' }, amount: { type: 'number' } } },
  },
];

const typeMembers = {
  name: Texts({ minProperties: 1, description: 'By language.', 'x-must': mapByLanguage }, shownText),
  jsonSchema: Type.Optional(
    Type.Unsafe<unknown>({
      anyOf: [{ type: 'object', additionalProperties: true }, { type: 'boolean' }],
      description:
        'JSON Schema 2020-12 that instances must satisfy: at most 64 KiB and 32 levels, no remote `$ref`, patterns in RE2 ' +
        'syntax. `multipleOf` means decimals; other keywords compare numbers as doubles.',
      'x-must': 'be a JSON Schema: an object or a boolean',
    }),
  ),
  metadata: Type.Optional(MetadataInput),
  schemas: unsupportedMember('be left out: the schema of the instances is jsonSchema'),
};

const WrittenTypeId = Type.String({
  pattern: '^[A-Z][A-Z0-9_]{0,62}$',
  'x-must': 'be capital letters, digits and _, a letter first, 63 at most',
});

export const NewCustomEntityType = Type.Object(
  { id: WrittenTypeId, ...typeMembers },
  { $id: 'NewCustomEntityType', additionalProperties: false, examples: examplesOfTypes },
);

export const CustomEntityType = Type.Object(
  { id: Type.Optional(Type.String({ description: 'If present, the id of the path.' })), ...typeMembers },
  { $id: 'CustomEntityTypeInput', additionalProperties: false, examples: examplesOfTypes },
);

export const CustomInstance = Type.Object(
  {
    id: Type.Optional(
      Type.String({
        pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]{1,255}$',
        not: { const: reservedInstanceId },
        'x-must': 'have 1 to 255 bytes and no control characters, and not be bulk, which is reserved',
        description: 'At most 255 bytes of UTF-8. Default: a random id.',
      }),
    ),
    name: Type.Optional(
      Type.Unsafe<unknown>({
        anyOf: [Type.String(), Texts({})],
        description: 'A text, or a map by language.',
        'x-must': 'be a string, or a map by language',
      }),
    ),
    metadata: Type.Optional(InstanceMetadata),
    _id: Type.Optional(
      Type.Unsafe<unknown>({
        not: {},
        description: 'The name of the id in `sort`. No instance has this member.',
        'x-must': 'be left out: it is the name of the id in sort; the field is id',
      }),
    ),
  },
  {
    $id: 'CustomInstanceInput',
    additionalProperties: true,
    description: 'Any other JSON members that the schema of the type allows.',
    examples: [{ id: 'claim-17', name: { en: 'Claim 17' }, orderId: 'o-4711', amount: 19.9 }],
  },
);

const Pointer = (description: string) =>
  Type.String({
    pattern: '^(/([^~/]|~[01])*)*$',
    'x-must': 'be a JSON Pointer',
    description,
  });

const path = Pointer('A JSON Pointer, such as `/lines/0/sku`.');
const from = Pointer('Where the value is taken from.');
const value = Type.Unknown({ description: 'Any JSON.' });
const closed = { additionalProperties: false } as const;

/** RFC 6902 ignores members that an operation does not use, if the format defines them. */
const ofOthers = { from: Type.Optional(from), value: Type.Optional(value) };

/** A patch (RFC 6902). */
export const JsonPatch = Type.Array(
  Type.Unsafe<object>(
    Type.Union(
      [
        Type.Object(
          { ...ofOthers, op: Type.Enum(['add', 'replace', 'test'], { type: 'string' }), path, value },
          { $id: 'ValueOperation', ...closed },
        ),
        Type.Object({ ...ofOthers, op: Type.Literal('remove'), path }, { $id: 'RemoveOperation', ...closed }),
        Type.Object(
          { ...ofOthers, op: Type.Enum(['move', 'copy'], { type: 'string' }), path, from },
          { $id: 'MoveOperation', ...closed },
        ),
      ],
      { $id: 'JsonPatchOperation' },
    ),
  ),
  {
    maxItems: maxOperations,
    description: 'A JSON Patch (RFC 6902). The service applies all of its operations, or none.',
    examples: [[{ op: 'replace', path: '/amount', value: 24.9 }]],
  },
);

export const ListQuery = Type.Object({ ...pagingParameters, q: filterParameter });

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
