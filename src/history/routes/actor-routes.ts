import { sql } from 'kysely';
import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { listItem } from '../../http/openapi/components.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { historyScopes } from '../../http/scopes.ts';
import type { DocumentLists, DocumentRows, Paginator } from '../../pagination/paginator.ts';
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

const ActorItem = listItem('ActorItem', Actor, []);

const prefix = Type.Optional(
  Type.String({
    maxLength: 1_000,
    description: 'The beginning of the id or of a name, case-insensitive. Default: everybody with an id.',
    'x-message': 'prefix must have at most 1000 characters',
  }),
);

interface ActorRoutes {
  readonly reads: HistoryReads;
  readonly documents: DocumentLists;
  readonly paginator: Paginator;
}

/** The people who made changes, with their names (contract 20). */
export async function actorRoutes(app: HttpServer, { reads, documents, paginator }: ActorRoutes): Promise<void> {
  listRoutes(app, paginator, {
    path: '/changelog/:tenant/actors',
    params: HistoryPath,
    query: { prefix },
    tags: ['Change history'],
    name: 'Actors',
    many: 'actors',
    item: ActorItem,
    scopes: historyScopes,
    async page({ credentials: { tenant }, query }, list, page) {
      const { prefix: begin = '' } = query as { prefix?: string };
      return await documents.page(actorRows(tenant, await reads.actorsBeginning(tenant, begin)), list, page);
    },
  });
}

/** `ids`: those whose id or one of whose names begins with a prefix; undefined: all. `since`: what the tenant keeps. */
function actorRows(tenant: string, { ids, since }: { ids: string[] | undefined; since: number }): DocumentRows {
  const time = (column: string) =>
    sql`to_char(timestamp 'epoch' + ${sql.ref(column)} * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  const isAmong = ids === undefined ? sql`true` : sql`a.actor_id = any (${ids}::text[])`;
  const document = sql`(
    select json_strip_nulls(json_build_object(
             'actorId', max(n.id),
             'names', json_agg(json_build_object('name', n.name, 'first', ${time('n.first')}, 'last', ${time('n.last')})
                               order by n.last desc, n.name),
             'changes', sum(n.changes), 'last', to_char(
               timestamp 'epoch' + max(n.last) * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))::text
      from (
        select a.actor_id as id, a.name, min(e.at) as first, max(e.at) as last, count(*) as changes
          from change_actor a
          join change_entry e on e.tenant = ${tenant} and e.actor = a.actor and e.at >= ${since}
          where a.tenant = ${tenant} and a.actor_id = person.id
          group by a.actor_id, a.name
      ) n)`;
  const from = sql`(
    select person.tenant, person.id, ${document} as document, (${document})::jsonb as fields
      from (
        select a.tenant, a.actor_id as id from change_actor a
          where a.tenant = ${tenant} and a.actor_id is not null and ${isAmong}
            and exists (select from change_entry e where e.tenant = ${tenant} and e.actor = a.actor and e.at >= ${since})
          group by a.tenant, a.actor_id
      ) person
  ) change_actor`;
  return { from, where: sql`tenant = ${tenant}` };
}
