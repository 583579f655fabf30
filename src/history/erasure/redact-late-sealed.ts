import { sql } from 'kysely';
import { hashOf } from '../../core/text-hash.ts';
import { int8Array, uuidArray } from '../../postgres/binary-arrays.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { readCommitted } from '../../proof/log/entry-store.ts';
import type { FieldLabel } from '../../proof/log/fields.ts';
import { leavesOf, readLeaves, readTreeSize } from '../../proof/log/leaf-store.ts';
import { entriesOfRow } from '../../recording/positions.ts';
import type { Place } from '../entries/entry-store.ts';
import { type Erasing, noteErased } from './erase-portion.ts';
import { redactProof } from './redact-proof.ts';

interface LateEntry extends Place {
  readonly position: number;
  readonly isOfActor: boolean;
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
    const entries = late.flatMap(({ position, isOfActor, isOfRecorder }, place) => {
      const entry = committed[place];
      const hidden = new Set<FieldLabel>();
      if (isOfActor) hidden.add('actor');
      if (isOfRecorder) hidden.add('recordedBy');
      return entry == null ? [] : [{ position, sealed: [entry], after: entry, hidden }];
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

async function readLate(
  transaction: DatabaseTransaction,
  { tenant, subject, recorders }: Erasing,
  { after, size }: { after: number; size: number },
): Promise<LateEntry[]> {
  if (!('actor' in subject)) return [];
  const { rows } = await sql<LateEntry>`
    select * from (
      select e.at, e.sequence, p.first + entry.number - 1 as position,
             a.lookup = any (${uuidArray([hashOf(subject.actor)])}::uuid[]) and position('"actor"' in e.erased) > 0 as "isOfActor",
             coalesce(e.recorded_by = any (${int8Array(recorders)}::bigint[]), false)
               and position('"recordedBy"' in e.erased) > 0 as "isOfRecorder"
        from change_position p
        cross join lateral ${entriesOfRow} as entry
        join change_entry e on e.tenant = ${tenant} and e.at = entry.at and e.sequence = entry.sequence
        join change_actor a on a.tenant = ${tenant} and a.actor = e.actor
        where p.tenant = ${tenant} and p.first + cardinality(p.fingerprints) - 1 > ${after}::bigint and p.first <= ${size}::bigint
          and e.erased is not null
    ) found
      where position > ${after}::bigint and position <= ${size}::bigint and ("isOfActor" or "isOfRecorder")
      order by position limit ${maxEntries}::integer`.execute(transaction);
  return rows;
}
