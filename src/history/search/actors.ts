import { sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { statementsOf } from '../../postgres/statements.ts';
import { timeText } from '../entries/entry-text.ts';
import type { Actor } from './names/dictionary.ts';
import { compareCodePoints } from './names/search-names.ts';
import type { HistorySnapshot } from './snapshot.ts';

interface Counted {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  readonly changes: number;
}

/** The actors with these ids as JSON texts, in their order: names, exact counts and times of the kept entries. */
export async function readActors(
  snapshot: HistorySnapshot,
  tenant: string,
  ids: readonly string[],
): Promise<readonly string[]> {
  const requested = new Set(ids);
  const slice = new TimeSlice();
  const actors: Actor[] = [];
  for (const [index, actor] of snapshot.dictionary.actors.entries()) {
    if (index % 4_096 === 0 && slice.isDue) await slice.rest();
    if (actor.actorId !== undefined && requested.has(actor.actorId)) actors.push(actor);
  }
  const counted = await countEach(snapshot, tenant, actors);
  const byId = Map.groupBy(actors, ({ actorId }) => actorId ?? '');
  return ids.map((id) =>
    actorText(
      id,
      (byId.get(id) ?? []).flatMap((actor) => counted.get(actor.id) ?? []),
    ),
  );
}

/** By the number of the actor; tallies count, an index has the first and the last entry. */
async function countEach(
  { transaction, horizon }: HistorySnapshot,
  tenant: string,
  actors: readonly Actor[],
): Promise<ReadonlyMap<number, Counted>> {
  if (actors.length === 0) return new Map();
  const numbers = actors.map(({ id }) => id);
  const { rows: counts } = await statementsOf(transaction).query<{ key: number; entries: number }>({
    text: `select key, entries from change_count_parts($1, '{actor}', $2::text[], '{"{}"}', $3::text[], '{null}', '{0}')`,
    values: [tenant, [`{${numbers.join(',')}}`], [`{${horizon}}`]],
  });
  const end = (direction: 'asc' | 'desc') => sql`(
    select e.at from change_entry e where e.tenant = ${tenant} and e.actor = of.actor and e.at >= ${horizon}
      order by e.at ${sql.raw(direction)}, e.sequence ${sql.raw(direction)} limit 1)`;
  const { rows: times } = await sql<{ actor: number; first: number | null; last: number | null }>`
    select of.actor, ${end('asc')} as first, ${end('desc')} as last from unnest(${numbers}::bigint[]) as of (actor)`.execute(
    transaction,
  );
  const timesOf = new Map(times.map((row) => [row.actor, row]));
  const nameOf = new Map(actors.map(({ id, name }) => [id, name]));
  const counted = new Map<number, Counted>();
  for (const { key, entries: changes } of counts) {
    const { first = null, last = null } = timesOf.get(key) ?? {};
    if (first !== null && last !== null) counted.set(key, { name: nameOf.get(key) ?? '', first, last, changes });
  }
  return counted;
}

function actorText(actorId: string, counted: readonly Counted[]): string {
  const names = [...Map.groupBy(counted, ({ name }) => name)].map(([name, of]) => ({
    name,
    first: Math.min(...of.map(({ first }) => first)),
    last: Math.max(...of.map(({ last }) => last)),
  }));
  names.sort((a, b) => b.last - a.last || compareCodePoints(a.name, b.name));
  const [latest] = names;
  // Retention or an erasure has just dropped the last change.
  if (latest === undefined)
    throw new AnnalsError(
      'service_unavailable',
      'The list of actors changed while it was read. Send the request again.',
    );
  return JSON.stringify({
    actorId,
    names: names.map(({ name, first, last }) => ({ name, first: timeText(first), last: timeText(last) })),
    changes: counted.reduce((sum, { changes }) => sum + changes, 0),
    last: timeText(latest.last),
  });
}
