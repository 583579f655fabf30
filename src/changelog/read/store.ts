import { CompiledQuery } from 'kysely';
import type { DatabaseTransaction } from '../../db/database.ts';
import type { Statements } from '../../db/statements.ts';
import type { Dictionary } from '../names/dictionary.ts';

/** An entry as the database has it; `related` and `paths` are JSON texts. */
export interface EntryRow {
  at: number;
  type: string;
  entity: string;
  entityId: string;
  name: string | null;
  schemaVersion: string | null;
  actor: string;
  related: string | null;
  paths: string;
}

/** Where an entry stands in time; of one millisecond the later sequence was recorded later. */
export interface Place {
  at: number;
  sequence: number;
}

export interface PageOfEntries {
  total: number;
  entries: EntryRow[];
  /** The entries instead, a few at a time, where they have more text than should be in memory at once. */
  pieces?: AsyncIterable<EntryRow[]>;
}

const entryColumns = `e.at, k.type, k.entity, e.entity_id as "entityId", e.name, e.schema_version as "schemaVersion",
  a.name as actor, e.related, e.paths`;
const withNames = `join change_kind k on k.tenant = e.tenant and k.kind = e.kind
  join change_actor a on a.tenant = e.tenant and a.actor = e.actor`;

/**
 * What the transaction's snapshot says of the tenant: its horizon, and whether it knows no other names. From then on the
 * transaction's statements are not compiled, which takes longer than they run, and are planned as for a solid state disk,
 * whatever the server's settings say.
 */
export async function readSnapshot(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  dictionary: Dictionary,
): Promise<{ horizon: number; current: boolean }> {
  const { rows } = await transaction.executeQuery<{ horizon: number; current: boolean }>(
    CompiledQuery.raw(
      `select horizon, current, set_config('jit', 'off', true), set_config('random_page_cost', '1.1', true)
         from change_snapshot($1, $2, $3::text::xid8, $4, $5)`,
      [tenant, now, dictionary.since, dictionary.recent, dictionary.lineage],
    ),
  );
  return rows[0] ?? { horizon: 0, current: false };
}

/** How many entries of some kinds (null: of any) there are from a moment on, and how many of all are not in the tallies yet. */
export async function readExtent(
  transaction: DatabaseTransaction,
  tenant: string,
  since: number,
  kinds: readonly number[] | null,
): Promise<{ entries: number; pending: number }> {
  const { rows } = await transaction.executeQuery<{ entries: number; pending: number }>(
    CompiledQuery.raw(
      `select (change_rank($1, array['{0}'], array[$3::text], array[$2::bigint]))[1] as entries,
              (select coalesce(sum(cardinality(d.ats)), 0) from change_delta d where d.tenant = $1)::bigint as pending`,
      [tenant, since, `{${(kinds ?? [0]).join(',')}}`],
    ),
  );
  return rows[0] ?? { entries: 0, pending: 0 };
}

const bytesOfEntry = 'octet_length(e.paths) + coalesce(octet_length(e.related), 0)';

/** The entries at these places, in the same order; undefined where their texts have more than `most` bytes together. */
export async function readEntries(
  statements: Statements,
  tenant: string,
  places: readonly Place[],
  most = Number.MAX_SAFE_INTEGER,
): Promise<EntryRow[] | undefined> {
  // What is too much is not even read: lengths are known without it.
  const { rows } = await statements.query<EntryRow & { fits: boolean }>({
    text: `select found.at, found.type, found.entity, found."entityId", found.name, found."schemaVersion", found.actor,
                  found.fits, case when found.fits then found.related end as related,
                  case when found.fits then found.paths end as paths
             from (
               select ${entryColumns}, place.ordinal, sum(${bytesOfEntry}) over () <= $4 as fits
                 from unnest($2::bigint[], $3::bigint[]) with ordinality as place (at, sequence, ordinal)
                 join change_entry e on e.tenant = $1 and e.at = place.at and e.sequence = place.sequence ${withNames}
             ) as found
             order by found.ordinal`,
    values: [tenant, places.map((place) => place.at), places.map((place) => place.sequence), most],
  });
  return rows[0]?.fits === false ? undefined : rows;
}

/** How many bytes the texts of the entries at these places have, in the same order. */
export async function readLengths(statements: Statements, tenant: string, places: readonly Place[]): Promise<number[]> {
  const { rows } = await statements.query<{ bytes: number }>({
    text: `select ${bytesOfEntry} as bytes
             from unnest($2::bigint[], $3::bigint[]) with ordinality as place (at, sequence, ordinal)
             join change_entry e on e.tenant = $1 and e.at = place.at and e.sequence = place.sequence
             order by place.ordinal`,
    values: [tenant, places.map((place) => place.at), places.map((place) => place.sequence)],
  });
  return rows.map((row) => row.bytes);
}
