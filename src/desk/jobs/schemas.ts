import { type Static, Type } from 'typebox';
import { statusOfErrorType } from '../../core/errors.ts';
import { shownMetadata } from '../../http/body-members.ts';
import { TenantName } from '../../http/chosen-id.ts';
import { listItem } from '../../http/openapi/components.ts';

export const JobsPath = Type.Object({ tenant: TenantName });
export const JobPath = Type.Object({
  tenant: TenantName,
  id: Type.String({ $id: 'JobId', description: 'The id of the job.' }),
});

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
    bom: Type.Optional(
      Type.Boolean({
        description:
          'For CSV alone: whether the file begins with a byte order mark, by which spreadsheets know UTF-8. Default: false.',
      }),
    ),
    rows: Type.Optional(
      Type.Enum(['change', 'field'], {
        type: 'string',
        description:
          'For CSV alone: one row for each change (default), or one for each changed path, with its value before and after.',
      }),
    ),
    context: Type.Optional(
      Type.Boolean({
        description:
          "With `true` the file has each entry's context and how it was recorded; needs changelog.changelog_manage.",
      }),
    ),
    proof: Type.Optional(
      Type.Boolean({
        description:
          'With `true` the file is a bundle, which proves the changes in it and which `annals verify` checks; in the format NDJSON, of all times unless `q` says others. Also needs changelog.proof_read.',
      }),
    ),
  },
  {
    $id: 'NewExport',
    additionalProperties: false,
    examples: [
      { type: 'EXPORT', q: 'entity:product type:update', format: 'NDJSON' },
      { type: 'EXPORT', q: 'entity:product type:update', format: 'CSV', bom: true, rows: 'field' },
    ],
  },
);

export const JobCreated = Type.Object({ jobId: Type.String() }, { $id: 'JobCreated' });

/** A job in responses (contract 8). */
export const Job = Type.Object(
  {
    id: Type.String(),
    type: Type.Enum(['AGENT_CHAT', 'EXPORT'], { type: 'string' }),
    status: Type.Enum(['in_progress', 'success', 'failure', 'skipped'], {
      type: 'string',
      description: 'A chat is `skipped` if its agent was deleted or disabled before the first call.',
    }),
    agentId: Type.Optional(Type.String()),
    sessionId: Type.Optional(Type.String({ format: 'uuid' })),
    requestId: Type.Optional(Type.String()),
    request: Type.Optional(Type.String({ description: 'The message to the agent.' })),
    message: Type.Optional(Type.String({ description: 'The answer of the agent, of a chat that succeeded.' })),
    response: Type.Optional(
      Type.Unknown({ description: 'The same answer as that of `chat`, of a chat that succeeded.' }),
    ),
    metadata: Type.Object(
      {
        ...shownMetadata,
        clientId: Type.Optional(Type.String({ description: 'The client that created the export.' })),
        q: Type.Optional(Type.String({ description: 'The query of an export.' })),
        format: Type.Optional(Type.Enum(['NDJSON', 'CSV'], { type: 'string' })),
        bom: Type.Optional(Type.Boolean({ description: 'Whether its CSV file begins with a byte order mark.' })),
        rows: Type.Optional(
          Type.Enum(['change', 'field'], { type: 'string', description: 'What a row of its CSV file is.' }),
        ),
        context: Type.Optional(
          Type.Boolean({
            description: "Whether the file has each entry's context. Such a file needs changelog.changelog_manage.",
          }),
        ),
        searchesContext: Type.Optional(
          Type.Boolean({
            description:
              'Whether `q` has terms on contexts. Its file, `q` and `entries` need changelog.changelog_manage.',
          }),
        ),
        proof: Type.Optional(Type.Boolean({ description: 'Whether its file is a bundle.' })),
        entries: Type.Optional(Type.Integer({ minimum: 0, description: 'Change entries in its file so far.' })),
        bytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Bytes of its file so far.' })),
        error: Type.Optional(
          Type.Object(
            {
              type: Type.Enum(Object.keys(statusOfErrorType), { type: 'string' }),
              message: Type.Optional(Type.String()),
            },
            { $id: 'JobError', description: 'Why the job failed, in the form of an API error.' },
          ),
        ),
        guarded: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'Paths with data of the change history. Missing for clients without a changelog scope, and with `searchesContext` for clients without changelog.changelog_manage.',
          }),
        ),
      },
      { $id: 'JobMetadata' },
    ),
  },
  { $id: 'Job' },
);
export type JobDocument = Static<typeof Job>;

export const JobItem = listItem('JobItem', Job);

export const NdjsonFile = Type.String({ description: 'A change entry as JSON on each line, newest first.' });
