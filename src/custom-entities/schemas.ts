import { Type } from 'typebox';
import { TenantName } from '../http/tenant-name.ts';
import { fieldsParameter, filterParameter, pagingParameters } from '../pagination/parameters.ts';

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

// This module itself reports the errors of a body, because it reads the text and not the parsed value.
const Metadata = Type.Unknown({
  description:
    '`version` counts up, and a write that carries another one than the current is refused with 409; `createdAt` and ' +
    '`modifiedAt` are kept by the service. Further members are kept as they are.',
  examples: [{ version: 1, createdAt: '2026-09-01T09:30:00.000Z', modifiedAt: '2026-09-01T09:30:00.000Z' }],
});

const examplesOfTypes = [
  {
    id: 'WARRANTY_CLAIM',
    name: { en: 'Warranty claim' },
    jsonSchema: { type: 'object', properties: { orderId: { type: 'string' }, amount: { type: 'number' } } },
  },
];

export const CustomEntityType = Type.Object(
  {
    id: Type.Optional(Type.Unknown({ description: 'Capital letters, digits and `_`, a letter first.' })),
    name: Type.Optional(Type.Unknown({ description: 'A map by language.' })),
    jsonSchema: Type.Optional(
      Type.Unknown({
        description:
          'JSON Schema 2020-12 that instances must satisfy: at most 64 KiB and 32 levels, no remote `$ref`, patterns in RE2 ' +
          'syntax. `multipleOf` means decimals; other keywords compare numbers as doubles.',
      }),
    ),
    metadata: Type.Optional(Metadata),
  },
  { $id: 'CustomEntityTypeInput', examples: examplesOfTypes },
);

export const CustomInstance = Type.Object(
  {
    id: Type.Optional(
      Type.Unknown({ description: 'A text of at most 255 bytes; drawn at random where it is left out.' }),
    ),
    name: Type.Optional(Type.Unknown({ description: 'A text, or a map by language.' })),
    metadata: Type.Optional(Metadata),
  },
  {
    $id: 'CustomInstanceInput',
    additionalProperties: true,
    description: 'Any further JSON fields, those the schema of the type allows where it has one.',
    examples: [{ id: 'claim-17', name: { en: 'Claim 17' }, orderId: 'o-4711', amount: 19.9 }],
  },
);

export const Created = Type.Object({ id: Type.String() }, { $id: 'Created' });

/** An operation of a patch (RFC 6902). This module itself reports its errors. */
export const JsonPatch = Type.Unknown({
  description: 'A patch as RFC 6902 has it: a list of operations, all of them or none.',
  examples: [[{ op: 'replace', path: '/amount', value: 24.9 }]],
});

export const ListQuery = Type.Object({ ...pagingParameters, q: filterParameter });
export const InstancesQuery = Type.Object({ ...pagingParameters, q: filterParameter, fields: fieldsParameter });
export const SearchQuery = Type.Object({ ...pagingParameters, fields: fieldsParameter });
