import type { Database } from '../../db/database.ts';
import { inTransaction } from '../../db/transaction.ts';
import { JsonSyntaxError, JsonTape } from '../../json/tape.ts';
import type { Sealer } from '../../sealing.ts';
import { type BatchCounts, type GivenChange, RejectedChangesError, type TakeChanges } from '../batch.ts';
import { readImportLine } from '../import-line.ts';
import { changesOfRow } from '../mapping/changes-of-row.ts';
import type { Mapping } from '../mapping/mapping.ts';
import { readRejectedRow } from '../mapping/rejected-row.ts';
import type { MappedChange, RowChange } from '../mapping/row-change.ts';
import { Occurrences } from '../occurrences.ts';
import { maxRetries } from '../record-change.ts';
import { type KeptChange, openKept } from './kept-change.ts';
import { deleteRejected, type ListedRejection, listRejected, updateReason } from './rejected-store.ts';

const rowsAtOnce = 100;

interface Retrying {
  db: Database;
  sealer: Sealer;
  take: TakeChanges;
  /** How rows that are kept become changes. Undefined: rows cannot be tried. */
  mapping?: Mapping | undefined;
}

/**
 * Tries again to record the rejected changes of a tenant, or of all tenants. A change that is recorded now is deleted
 * from the rejected ones. The others stay, each with its current reason. A change without content cannot be tried and
 * counts as rejected. Each change has its own transaction.
 */
export async function retryRejected(
  retrying: Retrying,
  tenant: string | undefined,
  signal?: AbortSignal,
): Promise<BatchCounts> {
  const sum: BatchCounts = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: 0 };
  let after: { tenant: string; id: string } | undefined;
  for (;;) {
    const rows = await listRejected(retrying.db, tenant, { after, count: rowsAtOnce });
    for (const row of rows) {
      signal?.throwIfAborted();
      const counts = await retryOne(retrying, row);
      for (const name of Object.keys(sum) as (keyof BatchCounts)[]) sum[name] += counts[name] ?? 0;
      after = row;
    }
    if (rows.length < rowsAtOnce) return sum;
  }
}

async function retryOne(
  { db, sealer, take, mapping }: Retrying,
  { tenant, id, way, recorder, position, reason, sealed }: ListedRejection,
): Promise<Partial<BatchCounts>> {
  if (sealed === null) return { read: 1, rejected: 1 };
  const kept = openKept(sealer, tenant, id, sealed);
  const recordedBy = recorder === null ? { way } : { way, by: recorder };
  const given = givenOf(kept, {
    position,
    mapping,
    actor: way === 'recorder' ? recorder : null,
    ownTenant: way === 'recorder',
  });
  try {
    return await inTransaction(
      db,
      async (transaction) => {
        // Somebody else may have retried or dropped it meanwhile.
        if (!(await deleteRejected(transaction, tenant, id))) return {};
        const counts: Partial<BatchCounts> = {};
        for (const { of, change } of given) {
          const taken = await take(transaction, { tenant: of, recordedBy, changes: [change], strict: true });
          add(counts, taken.counts);
        }
        return counts;
      },
      { retries: maxRetries },
    );
  } catch (error) {
    if (!(error instanceof RejectedChangesError)) throw error;
    const now = error.rejected[0]?.reason ?? reason;
    if (now !== reason) await updateReason(db, tenant, id, now);
    return { read: 1, rejected: 1 };
  }
}

function add(sum: Partial<BatchCounts>, counts: Partial<BatchCounts>): void {
  for (const name of Object.keys(counts) as (keyof BatchCounts)[]) sum[name] = (sum[name] ?? 0) + (counts[name] ?? 0);
}

interface TenantChange {
  of: string;
  change: GivenChange;
}

interface Kept {
  position: string;
  mapping: Mapping | undefined;
  /** Who made a change that names nobody. */
  actor: string | null;
  /** Whether a change that is mapped to another tenant than the one it came for is rejected. */
  ownTenant: boolean;
}

function givenOf(kept: KeptChange, how: Kept): TenantChange[] {
  const row = rowOf(kept.line);
  if (row !== undefined) return changesOfKeptRow(row, kept, how);
  return [{ of: kept.tenant, change: changeOfLine(kept, how.position) }];
}

function rowOf(text: string): RowChange | undefined {
  try {
    return readRejectedRow(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}

function changesOfKeptRow(
  row: RowChange,
  { tenant, line }: KeptChange,
  { position, mapping, actor, ownTenant }: Kept,
): TenantChange[] {
  const source = { position, line: () => line };
  const rejected = (reason: string): TenantChange => ({ of: tenant, change: { kind: 'rejected', reason, source } });
  if (mapping === undefined) return [rejected('is a row of a table: name the mapping with --mapping FILE')];
  const changes = changesOfRow(mapping, row, { actor: actor ?? 'unknown', tenant: ownTenant ? tenant : undefined });
  if (changes.length === 0) return [{ of: tenant, change: { kind: 'ignored' } }];
  return changes.map((mapped: MappedChange): TenantChange => {
    const of = mapped.tenant ?? tenant;
    if (ownTenant && of !== tenant) return rejected('is mapped to another tenant than that of the path');
    if (mapped.kind === 'unchanged') return { of, change: mapped };
    if (mapped.kind === 'rejected') return { of, change: { ...mapped, source } };
    return { of, change: { kind: 'change', change: mapped.change, source } };
  });
}

function changeOfLine({ line, identity }: KeptChange, position: string): GivenChange {
  const occurrences = new Occurrences();
  const read = readImportLine(Buffer.from(line), new JsonTape(), occurrences);
  occurrences.close();
  const source = { position, line: () => line };
  if (read.kind === 'rejected') return { ...read, source };
  if (read.kind === 'unchanged') return read;
  const change = identity === undefined ? read.change : { ...read.change, identity: Buffer.from(identity, 'hex') };
  return { kind: 'change', change, source };
}
