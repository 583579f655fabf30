import { Type } from 'typebox';
import { TenantName } from '../../http/tenant-name.ts';
import { fieldsParameter, filterParameter, pagingParameters } from '../../pagination/parameters.ts';

export const JobsPath = Type.Object({ tenant: TenantName });
export const JobPath = Type.Object({
  tenant: TenantName,
  id: Type.String({ $id: 'JobId', description: 'The id of the job.' }),
});

export const ListQuery = Type.Object({ ...pagingParameters, q: filterParameter, fields: fieldsParameter });
export const SearchQuery = Type.Object({ ...pagingParameters, fields: fieldsParameter });

export const NewExport = Type.Object(
  {
    type: Type.Literal('EXPORT', {
      description: 'Only exports. The operation `chat-async` of the agents creates jobs of chats.',
    }),
    q: Type.Optional(
      Type.String({
        description:
          'A query of the change history. Without a lower bound of `occurredAt`: the 30 days before this call.',
      }),
    ),
    format: Type.Union([Type.Literal('NDJSON'), Type.Literal('CSV')]),
    context: Type.Optional(
      Type.Boolean({
        description:
          "With `true` the file has each entry's context and how it was recorded; needs changelog.changelog_manage.",
      }),
    ),
  },
  {
    $id: 'NewExport',
    additionalProperties: false,
    examples: [{ type: 'EXPORT', q: 'entity:product type:update', format: 'NDJSON' }],
  },
);

export const JobMade = Type.Object({ jobId: Type.String() }, { $id: 'JobCreated' });
