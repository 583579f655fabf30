import { sql } from 'kysely';
import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { jsonType, pageOf } from '../../http/openapi/answers.ts';
import { historyScopes } from '../../http/scopes.ts';
import { arrayBody, mapTexts } from '../../pagination/page-texts.ts';
import type { DocumentLists, DocumentRows, Paginator } from '../../pagination/paginator.ts';
import { PagingHeaders, pagingParameters } from '../../pagination/parameters.ts';
import type { HistoryReads } from '../history-reads.ts';
import { HistoryPath } from './schemas.ts';

const moment = (description: string) => Type.String({ format: 'date-time', description });

const Actor = Type.Object(
  {
    actorId: Type.String(),
    names: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          first: moment('When the first change under this name occurred.'),
          last: moment('When the last one did.'),
        },
        { $id: 'ActorName' },
      ),
      { description: 'The names that changes have beside this id, the latest first.' },
    ),
    changes: Type.Integer({ minimum: 1, format: 'int64', description: 'The number of changes, exact.' }),
    last: moment('When the last change occurred.'),
  },
  {
    $id: 'Actor',
    description: 'Who made changes, by the id that the changes have. Only changes that the service still keeps count.',
    examples: [
      {
        actorId: 'u-17',
        names: [
          { name: 'Jane Smith', first: '2026-08-02T09:00:00.000Z', last: '2026-09-01T09:30:00.000Z' },
          { name: 'Jane Doe', first: '2025-03-11T12:00:00.000Z', last: '2026-08-01T17:45:12.000Z' },
        ],
        changes: 412,
        last: '2026-09-01T09:30:00.000Z',
      },
    ],
  },
);

const prefix = Type.Optional(
  Type.String({
    maxLength: 1_000,
    description: 'The beginning of the id or of a name, case-insensitive. Default: everybody with an id.',
    'x-message': 'prefix must have at most 1000 characters',
  }),
);

const { sort: _sort, ...paging } = pagingParameters;

const ActorsQuery = Type.Object({
  ...paging,
  prefix,
  sort: Type.Optional(
    Type.Literal('actorId:ASC', {
      type: 'string',
      description: 'The one order of this list.',
      'x-message': 'sort must be actorId:ASC',
    }),
  ),
});

interface ActorRoutes {
  readonly reads: HistoryReads;
  readonly documents: DocumentLists;
  readonly paginator: Paginator;
}

/** The people who made changes, with their names (contract 20). */
export async function actorRoutes(app: HttpServer, { reads, documents, paginator }: ActorRoutes): Promise<void> {
  app.get(
    '/changelog/:tenant/actors',
    {
      config: { scopes: historyScopes },
      schema: {
        operationId: 'listActors',
        tags: ['Change history'],
        summary: 'Listing actors',
        description: 'Who made changes, by the ids that the changes have, with all their names.',
        params: HistoryPath,
        headers: PagingHeaders,
        querystring: ActorsQuery,
        response: { 200: pageOf(Actor, 'A page of actors.') },
      },
    },
    async ({ params: { tenant }, query: { prefix: begin = '', sort: _order, ...query }, headers }, reply) => {
      const of = { tenant, operation: 'list actors', filter: begin };
      const page = paginator.read({ query, headers }, of);
      const rows = actorRows(tenant, await reads.actorsBeginning(tenant, begin));
      const found = await documents.page(rows, {}, page);
      const texts = await mapTexts(found.texts, (ids) =>
        reads.actors(
          tenant,
          ids.map((id) => JSON.parse(id)),
        ),
      );
      return await reply.headers(found.headers).type(jsonType).send(arrayBody(texts));
    },
  );
}

/** The longest id of a row, in bytes: a cursor has it. */
const maxRowId = 255;

/**
 * Rows whose documents are the ids as JSON. `ids`: those whose id or one of whose names begins with a prefix; undefined:
 * all. `since`: what the tenant keeps. Ids that are too long for a cursor come in the order of their beginnings.
 */
function actorRows(tenant: string, { ids, since }: { ids: string[] | undefined; since: number }): DocumentRows {
  const isAmong = ids === undefined ? sql`true` : sql`a.actor_id = any (${ids}::text[])`;
  const from = sql`(
    select person.tenant, case when octet_length(person.id) <= ${maxRowId}::integer then person.id
                            else left(person.id, 40) || md5(person.id) end as id,
           to_json(person.id)::text as document, '{}'::jsonb as fields
      from (
        select a.tenant, a.actor_id as id from change_actor a
          where a.tenant = ${tenant} and a.actor_id is not null and ${isAmong}
            and exists (select from change_entry e where e.tenant = ${tenant} and e.actor = a.actor and e.at >= ${since})
          group by a.tenant, a.actor_id
      ) person
  ) change_actor`;
  return { from, where: sql`tenant = ${tenant}` };
}
