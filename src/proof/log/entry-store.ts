import { CompiledQuery, sql } from 'kysely';
import { int8Array } from '../../postgres/binary-arrays.ts';
import type { Connection } from '../../postgres/database.ts';
import type { Receipt } from '../../recording/receipt-store.ts';
import { type CommittedEntry, recordedByText } from './fields.ts';
import { parseReceipt } from './receipt-text.ts';

/** Where an entry is. */
export interface EntryPlace {
  readonly at: number;
  readonly sequence: number;
}

/** What a commitment is made of, and what of it was erased: a JSON array, or null. */
export type StoredEntry = CommittedEntry & { readonly erased: string | null };

interface EntryRow extends Omit<StoredEntry, 'recordedBy'> {
  readonly place: number;
  readonly fits: boolean;
  readonly recorder: number | null;
  readonly way: string | null;
  readonly by: string | null;
  readonly iss: string | null;
  readonly sub: string | null;
}

/**
 * The entries at these places, as the database has them, without a look at retention; null where there is none. It
 * answers fewer where their texts have more than `maxBytes` together, but one at least.
 */
export async function readCommitted(
  db: Connection,
  tenant: string,
  places: readonly EntryPlace[],
  maxBytes: number,
): Promise<(StoredEntry | null)[]> {
  const { rows } = await db.executeQuery<EntryRow>(
    CompiledQuery.raw(entriesStatement, [
      tenant,
      int8Array(places.map(({ at }) => at)),
      int8Array(places.map(({ sequence }) => sequence)),
      maxBytes,
    ]),
  );
  const cut = rows.find(({ fits }) => !fits)?.place ?? places.length + 1;
  const entries = new Array<StoredEntry | null>(cut - 1).fill(null);
  for (const { place, fits: _fits, recorder, way, by, iss, sub, ...columns } of rows) {
    if (place >= cut) continue;
    entries[place - 1] = {
      ...columns,
      recordedBy: recordedByOf(recorder, way === null ? null : { way, by, iss, sub }),
    };
  }
  return entries;
}

// Sizes come from the heads of values, so texts that do not fit are not read.
const entriesStatement = `
select o.place, o.fits, replace(o.identity::text, '-', '') as identity, o.at, k.type, k.entity, o.entity_id as "entityId",
       o.name, o.schema_version as "schemaVersion", a.name as actor, a.actor_id as "actorId",
       a.behalf_name as "onBehalfOfName", a.behalf_id as "onBehalfOfId",
       coalesce(o.correlation::text, o.correlation_text) as "correlationId", o.context, o.marks, o.erased,
       case when o.fits then o.related end as related, case when o.fits then o.paths end as paths,
       o.recorded_by as recorder, r.way, r.name as by, r.issuer as iss, r.subject as sub
  from (
    select e.*, requested.place,
           requested.place = 1 or sum(octet_length(e.paths) + coalesce(octet_length(e.related), 0))
             over (order by requested.place) <= $4::bigint as fits
      from unnest($2::bigint[], $3::bigint[]) with ordinality as requested (at, sequence, place)
      join change_entry e on e.tenant = $1 and e.at = requested.at and e.sequence = requested.sequence
  ) o
  join change_kind k on k.tenant = $1 and k.kind = o.kind
  join change_actor a on a.tenant = $1 and a.actor = o.actor
  left join change_recorder r on r.tenant = $1 and r.recorder = o.recorded_by
  order by o.place`;

function recordedByOf(recorder: number | null, known: Parameters<typeof recordedByText>[0] | null): string | null {
  if (recorder === null) return recordedByText({ way: 'import' });
  if (recorder === 1) return recordedByText({ way: 'service' });
  return known === null ? null : recordedByText(known);
}

/** The bodies of the receipts at some positions, both included, with their positions. */
export async function readReceiptsBetween(
  db: Connection,
  tenant: string,
  from: number,
  to: number,
): Promise<[number, string][]> {
  const { rows } = await sql<{ position: number; body: string }>`
    select position, body from change_receipt
      where tenant = ${tenant} and position between ${from}::bigint and ${to}::bigint order by position`.execute(db);
  return rows.map(({ position, body }) => [position, body]);
}

/** A receipt as people read it. */
export interface ToldReceipt {
  readonly position: number;
  readonly what: string;
  readonly at: string;
  readonly by: string;
  readonly reason?: string;
  /** How many positions are concerned. */
  readonly changes: number;
}

/** The newest receipts of the tenant, newest first. */
export async function readNewestReceipts(db: Connection, tenant: string, limit: number): Promise<ToldReceipt[]> {
  const { rows } = await sql<{ position: number; body: string }>`
    select position, body from change_receipt
      where tenant = ${tenant} order by position desc limit ${limit}::integer`.execute(db);
  return rows.flatMap(({ position, body }) => {
    // One that somebody made up may be anything.
    const known = parseReceipt(position, body);
    if (known === undefined) return [];
    const { at, by, reason } = JSON.parse(body) as Receipt;
    const changes = known.ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
    return [
      {
        position,
        what: known.what,
        at: String(at),
        by: String(by),
        ...(reason && { reason: String(reason) }),
        changes,
      },
    ];
  });
}
