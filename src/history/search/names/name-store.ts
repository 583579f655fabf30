import { sql } from 'kysely';
import { AnnalsError } from '../../../core/errors.ts';
import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import type { DatabaseTransaction } from '../../../postgres/database.ts';
import type { Statements } from '../../../postgres/statements.ts';
import type { Actor, Dictionary, Kind, NamesRead } from './dictionary.ts';

/** Bytes of memory of a name in addition to its text: the object, the head of its text, its place in the list. */
const bytesOfName = 80;
/** Maximum bytes of the names of one tenant: about 10 million names. */
const maxBytesOfNames = 1024 * 1024 * 1024;
const namesAtOnce = 4_096;

/**
 * Reads the names registered since a dictionary was read, and perhaps some that it already has; without a dictionary,
 * all names. Throws service_unavailable if the names take more than `maxBytes` bytes of memory.
 */
export async function readNames(
  statements: Statements,
  tenant: string,
  known: Pick<Dictionary, 'since' | 'lineage'> | undefined,
  maxBytes = maxBytesOfNames,
): Promise<NamesRead> {
  const { rows } = await statements.query<{
    since: string;
    lineage: string;
    bytes: number;
    recent: number | null;
    kinds: string | null;
    actors: string | null;
  }>({
    // One row has many names as JSON. With one row for each name, parsing would block the event loop.
    text: `with snapshot as (
       select pg_snapshot_xmin(pg_current_snapshot()) as since, change_lineage($1) as lineage,
              case when change_lineage($1) = $3 then $2::text::xid8 else '0'::xid8 end as unknown_since
     ), extent as materialized (
       select coalesce(sum(octet_length(n.name) + coalesce(octet_length(n.actor_id), 0) + coalesce(octet_length(n.behalf_name), 0)
                           + coalesce(octet_length(n.behalf_id), 0) + $4), 0)::bigint as bytes
         from snapshot s join change_actor n on n.tenant = $1 and n.registered >= s.unknown_since
     )
     select s.since, s.lineage, extent.bytes, n.recent, n.kinds, n.actors
       from snapshot s
       cross join extent
       left join lateral (
         select json_agg(json_build_array(k.kind, k.entity, k.type, k.related_entities) order by k.kind)::text as kinds,
                null as actors, count(*) filter (where k.registered >= s.since) as recent, -1::bigint as batch
           from change_kind k where k.tenant = $1 and k.registered >= s.unknown_since
         union all
         select null, json_agg(case when a.has_name_alone then json_build_array(a.actor, a.name)
                                    else json_build_array(a.actor, a.name, a.actor_id, a.behalf_name, a.behalf_id) end
                               order by a.actor)::text,
                count(*) filter (where a.registered >= s.since), a.batch
           from (
             select c.actor, c.name, c.actor_id, c.behalf_name, c.behalf_id, c.registered,
                    coalesce(c.actor_id, c.behalf_name, c.behalf_id) is null as has_name_alone,
                    (row_number() over (order by c.actor) - 1) / ${namesAtOnce} as batch
               from change_actor c where c.tenant = $1 and c.registered >= s.unknown_since
           ) as a
           where extent.bytes <= $5
           group by a.batch
       ) as n on true
       order by n.batch`,
    values: [tenant, known?.since ?? '0', known?.lineage ?? '', bytesOfName, maxBytes],
  });
  const [head] = rows;
  if (head === undefined) throw new Error('the database returned no snapshot');
  if (head.bytes > maxBytes) {
    const message = `The change history has more names of actors than the ${Math.round(maxBytes / 1e6)} MB that are kept of a tenant.`;
    throw new AnnalsError('service_unavailable', message);
  }
  const kinds: Kind[] = [];
  const actors: Actor[] = [];
  const slice = new TimeSlice();
  for (const row of rows) {
    if (slice.isDue) await slice.rest();
    for (const [id, entity, type, relatedEntities] of parsed<[number, string, string, string[]]>(row.kinds)) {
      kinds.push({ id, entity, type, relatedEntities });
    }
    for (const actor of parsed<ActorRow>(row.actors)) actors.push(actorOf(actor));
  }
  const recent = rows.reduce((sum, row) => sum + (row.recent ?? 0), 0);
  return { since: head.since, lineage: head.lineage, recent, kinds, actors, bytes: head.bytes };
}

type ActorRow = [id: number, name: string, ...of: (string | null)[]];

function actorOf([id, name, actorId, onBehalfOfName, onBehalfOfId]: ActorRow): Actor {
  // Most actors have a name alone, and there may be millions.
  if (actorId === undefined) return { id, name };
  return {
    id,
    name,
    actorId: actorId ?? undefined,
    onBehalfOfName: onBehalfOfName ?? undefined,
    onBehalfOfId: onBehalfOfId ?? undefined,
  };
}

function parsed<Row>(text: string | null): Row[] {
  return text === null ? [] : JSON.parse(text);
}

/** Those of these actors, or kinds, that have an entry since a moment. */
export async function findVisible(
  transaction: DatabaseTransaction,
  tenant: string,
  of: 'actor' | 'kind',
  { ids, since }: { ids: readonly number[]; since: number },
): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set();
  // Each is one step in an index, in the order that only that index has.
  const { rows } = await sql<{ id: number }>`
    select of.id
      from unnest(${ids}::bigint[]) as of (id)
      cross join lateral (
        select from change_entry e
          where e.tenant = ${tenant} and ${sql.ref(`e.${of}`)} = of.id and e.at >= ${since}
          order by e.at, e.sequence limit 1
      ) as visible`.execute(transaction);
  return new Set(rows.map(({ id }) => id));
}
