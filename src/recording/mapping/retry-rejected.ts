import { memberOf, stringOf } from '../../core/json/members.ts';
import { maximumImportDepth, parseObject } from '../../core/json/parse.ts';
import { JsonTape } from '../../core/json/tape.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import {
  addCounts,
  type BatchCounts,
  type ChangeSource,
  type GivenChange,
  noCounts,
  RejectedChangesError,
  type TakeChanges,
} from '../batches/batch.ts';
import { type KeptChange, openKept } from '../batches/kept-change.ts';
import { deleteRejected, type ListedRejection, listRejected, updateReason } from '../batches/rejected-store.ts';
import { Occurrences } from '../occurrences.ts';
import { maxRetries } from '../record-change.ts';
import { changesOfRow } from './changes-of-row.ts';
import { changeOfClient, type RecordingClient, refusalOfRow } from './client-changes.ts';
import { type ImportedLine, readImportLine, typeOfOp } from './import-line.ts';
import type { Mapping } from './mapping.ts';
import { readRejectedRow } from './rejected-row.ts';
import type { MappedChange, RowChange } from './row-change.ts';
import { rulesOfDocuments } from './ruled-document.ts';

const rowsAtOnce = 100;

interface Retrying {
  db: Database;
  sealer: Sealer;
  take: TakeChanges;
  /** How rows that are kept become changes. Undefined: rows cannot be tried. */
  mapping?: Mapping | undefined;
  /** What a client of the recorder may do now, or why it may record nothing. */
  clientOf: (tenant: string, clientId: string | undefined) => Promise<RecordingClient | string>;
}

/** Which changes are tried; without a tenant those of all tenants, without an id all of a tenant. */
interface Tried {
  tenant?: string | undefined;
  id?: string | undefined;
}

/**
 * Tries again to record the rejected changes of a tenant, or of all tenants, by the rules of the way they came. A change that is recorded
 * now is deleted from the rejected ones. The others stay, each with its current reason. What is kept without content, or as neither a line
 * nor a row, cannot be tried: it counts as rejected, and its reason stays. Each change has its own transaction.
 */
export async function retryRejected(
  retrying: Retrying,
  { tenant, id }: Tried,
  signal?: AbortSignal,
): Promise<BatchCounts> {
  const sum = noCounts();
  let after: { tenant: string; id: string } | undefined;
  for (;;) {
    const rows = await listRejected(retrying.db, tenant, { after, count: rowsAtOnce, id });
    for (const row of rows) {
      signal?.throwIfAborted();
      addCounts(sum, await retryOne(retrying, row));
      after = row;
    }
    if (rows.length < rowsAtOnce) return sum;
  }
}

async function retryOne(
  { db, sealer, take, mapping, clientOf }: Retrying,
  { tenant, id, way, recorder, position, reason, sealed }: ListedRejection,
): Promise<Partial<BatchCounts>> {
  const kept = sealed === null ? undefined : openKept(sealer, tenant, id, sealed);
  if (kept === undefined || !canBeTried(kept)) return { read: 1, rejected: 1 };
  const recordedBy = recorder === null ? { way } : { way, by: recorder };
  const client = way === 'recorder' ? await clientOf(kept.tenant, kept.client) : undefined;
  const given = givenOf(kept, { position, mapping, client });
  try {
    return await inTransaction(
      db,
      async (transaction) => {
        // Somebody else may have retried or dropped it meanwhile.
        if (!(await deleteRejected(transaction, tenant, id))) return {};
        const counts = noCounts();
        for (const { of, change } of given) {
          const taken = await take(transaction, {
            tenant: of,
            recordedBy,
            client: kept.client,
            changes: [change],
            strict: true,
          });
          addCounts(counts, taken.counts);
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

interface TenantChange {
  of: string;
  change: GivenChange;
}

interface Given {
  position: string;
  mapping: Mapping | undefined;
  /** The client that sent it, or why that may record nothing. Undefined: it came in another way. */
  client: RecordingClient | string | undefined;
}

function givenOf(kept: KeptChange, given: Given): TenantChange[] {
  const source = { position: given.position, line: () => kept.line };
  if (typeof given.client === 'string') {
    return [{ of: kept.tenant, change: { kind: 'rejected', reason: given.client, source } }];
  }
  // Other ways make the lines that they keep. A client could send one that looks like a row.
  const row = given.client === undefined || kept.isRow === true ? readRejectedRow(kept.line) : undefined;
  if (row !== undefined) return changesOfKeptRow(row, kept, { ...given, client: given.client });
  return [{ of: kept.tenant, change: changeOfLine(kept, { ...given, client: given.client }, source) }];
}

/** Of an event that could not be read its text is kept, and of a row that could not be written its place. */
function canBeTried({ line }: KeptChange): boolean {
  const node = parseObject(line, maximumImportDepth + 1);
  const op = node && stringOf(memberOf(node, 'op'));
  return (op !== undefined && typeOfOp.has(op)) || readRejectedRow(line) !== undefined;
}

function changesOfKeptRow(
  row: RowChange,
  { tenant, line }: KeptChange,
  { position, mapping, client }: Given & { client: RecordingClient | undefined },
): TenantChange[] {
  const source = { position, line: () => line };
  const rejected = (reason: string): TenantChange => ({ of: tenant, change: { kind: 'rejected', reason, source } });
  if (mapping === undefined) return [rejected('is a row of a table: name the mapping with --mapping FILE')];
  const changes = changesOfRow(mapping, row, { actor: client?.name ?? 'unknown', tenant: client?.tenant });
  if (changes.length === 0) return [{ of: tenant, change: { kind: 'ignored' } }];
  return changes.map((mapped: MappedChange): TenantChange => {
    const refusal = client && refusalOfRow(mapped, client);
    if (refusal !== undefined) return rejected(refusal);
    const of = mapped.tenant ?? tenant;
    if (mapped.kind === 'unchanged') return { of, change: mapped };
    if (mapped.kind === 'rejected') return { of, change: { ...mapped, source } };
    return { of, change: { kind: 'change', change: mapped.change, source } };
  });
}

function changeOfLine(
  { line, identity }: KeptChange,
  { client, mapping }: Given & { client: RecordingClient | undefined },
  source: ChangeSource,
): GivenChange {
  const occurrences = new Occurrences();
  // A mask may be newer than the line. Lines of other ways were made of rows, for which the rules of their tables hold too.
  const rules = mapping && (client === undefined ? rulesOfDocuments(mapping) : mapping.entities);
  const read = readImportLine(Buffer.from(line), new JsonTape(), occurrences, rules);
  occurrences.close();
  const own = identity === undefined ? undefined : Buffer.from(identity, 'hex');
  const judged = client === undefined ? read : changeOfClient(withOwnActor(read, client), client, own);
  if (judged.kind === 'rejected') return { ...judged, source };
  if (judged.kind === 'unchanged') return judged;
  const change = own === undefined ? judged.change : { ...judged.change, identity: own };
  return { kind: 'change', change, source };
}

/** A line that named no actor is kept with the name of its client. */
function withOwnActor(read: ImportedLine, { name }: RecordingClient): ImportedLine {
  return read.kind === 'change' && read.change.actor === name ? { ...read, hasActor: false } : read;
}
