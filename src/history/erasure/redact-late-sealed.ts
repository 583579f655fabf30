import { sql } from 'kysely';
import { int8Array } from '../../postgres/binary-arrays.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { readCommitted } from '../../proof/log/entry-store.ts';
import { leavesOf, readLeaves, readTreeSize } from '../../proof/log/leaf-store.ts';
import { entriesOfRow } from '../../recording/positions.ts';
import type { Place } from '../entries/entry-store.ts';
import { actorColumns, type Erasing, hiddenNames, noteErased } from './erase-portion.ts';
import type { SubjectActors } from './find-subject.ts';
import { redactProof } from './redact-proof.ts';

interface LateEntry extends Place {
  readonly position: number;
  readonly isOfActor: boolean;
  readonly isOfActorId: boolean;
  readonly isOnBehalf: boolean;
  readonly isOnBehalfId: boolean;
  readonly isOfRecorder: boolean;
}

/** Entries of a read. */
const maxEntries = 200;

/**
 * Hides names in the proof of entries that were sealed after their portion was erased, from after position `after`:
 * their dictionaries still had the name. The caller has the lock of the proof, and renames in this transaction.
 */
export async function redactLateSealed(
  transaction: DatabaseTransaction,
  erasing: Erasing,
  after: number,
): Promise<void> {
  const { tenant } = erasing;
  const size = await readTreeSize(transaction, tenant);
  for (let reached = after; ; ) {
    const found = await readLate(transaction, erasing, { after: reached, size });
    const last = found.at(-1);
    if (last === undefined) return;
    reached = last.position;
    const late: LateEntry[] = [];
    for (const entry of found) {
      const [leaf] = leavesOf(await readLeaves(transaction, tenant, entry.position, entry.position));
      if (leaf?.seed !== undefined) late.push(entry);
    }
    const committed = await readCommitted(transaction, tenant, late, Number.MAX_SAFE_INTEGER);
    const entries = late.flatMap((of, place) => {
      const entry = committed[place];
      if (entry == null) return [];
      return [{ position: of.position, sealed: [entry], after: entry, hidden: hiddenNames(entry, of) }];
    });
    if (entries.length === 0) continue;
    await redactProof(transaction, tenant, entries);
    await noteErased(
      transaction,
      erasing,
      entries.map(({ position }) => position),
    );
  }
}

/** The rows that still have the name: entries with another were sealed after it was replaced. */
function stillNamed({ names, ids, behalfNames, behalfIds, left }: SubjectActors): SubjectActors {
  const named = new Set(left);
  const kept = (numbers: readonly number[]) => numbers.filter((number) => named.has(number));
  return { names: kept(names), ids: kept(ids), behalfNames: kept(behalfNames), behalfIds: kept(behalfIds), left };
}

async function readLate(
  transaction: DatabaseTransaction,
  { tenant, subject, actors, recorders }: Erasing,
  { after, size }: { after: number; size: number },
): Promise<LateEntry[]> {
  if ('entity' in subject) return [];
  const { rows } = await sql<LateEntry>`
    select * from (
      select e.at, e.sequence, p.first + entry.number - 1 as position,
             ${actorColumns(stillNamed(actors))},
             coalesce(e.recorded_by = any (${int8Array(recorders)}::bigint[]), false)
               and position('"recordedBy"' in e.erased) > 0 as "isOfRecorder"
        from change_position p
        cross join lateral ${entriesOfRow} as entry
        join change_entry e on e.tenant = ${tenant} and e.at = entry.at and e.sequence = entry.sequence
        where p.tenant = ${tenant} and p.first + cardinality(p.fingerprints) - 1 > ${after}::bigint and p.first <= ${size}::bigint
          and e.erased is not null
    ) found
      where position > ${after}::bigint and position <= ${size}::bigint and ("isOfActor" or "isOnBehalf" or "isOfRecorder")
      order by position limit ${maxEntries}::integer`.execute(transaction);
  return rows;
}
