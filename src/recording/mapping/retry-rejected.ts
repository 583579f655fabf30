import { memberOf, stringOf } from '../../core/json/members.ts';
import { maximumImportDepth, parseObject } from '../../core/json/parse.ts';
import { JsonTape } from '../../core/json/tape.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import {
  addCounts,
  type BatchCounts,
  type IncomingChange,
  noCounts,
  type RecordBatch,
  RejectedChangesError,
} from '../batches/record-batch.ts';
import {
  type ChangeSource,
  deleteRejected,
  type ListedRejection,
  listRejected,
  openRejected,
  type RejectedContent,
  updateReason,
} from '../batches/rejected-changes.ts';
import { withDerivedCorrelation } from '../change.ts';
import { maxRetries } from '../record-change.ts';
import { changesOfRow } from './changes-of-row.ts';
import { rulesOfDocuments } from './history-changes.ts';
import {
  changeOfClient,
  type ImportedLine,
  type RecordingClient,
  readImportLine,
  refusalOfRow,
  typeOfOp,
} from './import-line.ts';
import type { Mapping } from './mapping.ts';
import { readRejectedRow } from './rejected-row.ts';
import type { MappedChange, RowChange } from './row-change.ts';

const pageSize = 100;

interface RetryContext {
  db: Database;
  sealer: Sealer;
  recordBatch: RecordBatch;
  /** Maps stored rows. Undefined: rows cannot be retried. */
  mapping?: Mapping | undefined;
  /** The current rights of a client of the recorder, or why it may not record. */
  clientOf: (tenant: string, clientId: string | undefined) => Promise<RecordingClient | string>;
}

/** The changes to retry: default all tenants, and all ids. */
interface RejectedFilter {
  tenant?: string | undefined;
  id?: string | undefined;
}

/**
 * Retries rejected changes by the rules of their source, each in its own transaction. Recorded changes are removed; the
 * others stay with their current reason. Changes stored without content, or as neither a line nor a row, stay rejected.
 */
export async function retryRejected(
  context: RetryContext,
  { tenant, id }: RejectedFilter,
  signal?: AbortSignal,
): Promise<BatchCounts> {
  const sum = noCounts();
  let after: { tenant: string; id: string } | undefined;
  for (;;) {
    const rows = await listRejected(context.db, tenant, { after, count: pageSize, id });
    for (const row of rows) {
      signal?.throwIfAborted();
      addCounts(sum, await retryOne(context, row));
      after = row;
    }
    if (rows.length < pageSize) return sum;
  }
}

async function retryOne(
  { db, sealer, recordBatch, mapping, clientOf }: RetryContext,
  { tenant, id, way, recorder, position, reason, sealed }: ListedRejection,
): Promise<Partial<BatchCounts>> {
  const content = sealed === null ? undefined : openRejected(sealer, tenant, id, sealed);
  if (content === undefined || !isRetryable(content)) return { read: 1, rejected: 1 };
  const recordedBy = recorder === null ? { way } : { way, by: recorder };
  const client = way === 'recorder' ? await clientOf(content.tenant, content.client) : undefined;
  const changes = changesOf(content, { position, mapping, client });
  try {
    return await inTransaction(
      db,
      async (transaction) => {
        // May have been retried or dropped concurrently.
        if (!(await deleteRejected(transaction, tenant, id))) return {};
        const counts = noCounts();
        for (const { tenant: owner, change } of changes) {
          const recorded = await recordBatch(transaction, {
            tenant: owner,
            recordedBy,
            client: content.client,
            changes: [change],
            strict: true,
          });
          addCounts(counts, recorded.counts);
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
  tenant: string;
  change: IncomingChange;
}

interface RetrySource {
  position: string;
  mapping: Mapping | undefined;
  /** The client that sent it, or why it may not record. Undefined if no client sent it. */
  client: RecordingClient | string | undefined;
}

function changesOf(content: RejectedContent, changes: RetrySource): TenantChange[] {
  const source = { position: changes.position, line: () => content.line };
  if (typeof changes.client === 'string') {
    return [{ tenant: content.tenant, change: { kind: 'rejected', reason: changes.client, source } }];
  }
  // Only lines from clients are untrusted: one could imitate a row.
  const row = changes.client === undefined || content.isRow === true ? readRejectedRow(content.line) : undefined;
  if (row !== undefined) return changesOfRejectedRow(row, content, { ...changes, client: changes.client });
  return [{ tenant: content.tenant, change: changeOfLine(content, { ...changes, client: changes.client }, source) }];
}

/** Not for unreadable events, stored as text, or unwritable rows, stored as their position. */
function isRetryable({ line }: RejectedContent): boolean {
  const node = parseObject(line, maximumImportDepth + 1);
  const op = node && stringOf(memberOf(node, 'op'));
  return (op !== undefined && typeOfOp.has(op)) || readRejectedRow(line) !== undefined;
}

function changesOfRejectedRow(
  row: RowChange,
  { tenant, line, correlationId }: RejectedContent,
  { position, mapping, client }: RetrySource & { client: RecordingClient | undefined },
): TenantChange[] {
  const source = { position, line: () => line };
  const rejected = (reason: string): TenantChange => ({ tenant, change: { kind: 'rejected', reason, source } });
  if (mapping === undefined) return [rejected('is a row of a table: name the mapping with --mapping FILE')];
  const derivedCorrelationId = row.derivedCorrelationId ?? correlationId;
  const changes = changesOfRow(
    mapping,
    { ...row, derivedCorrelationId },
    { actor: client?.name ?? 'unknown', tenant: client?.tenant },
  );
  if (changes.length === 0) return [{ tenant, change: { kind: 'ignored' } }];
  return changes.map((mapped: MappedChange): TenantChange => {
    const refusal = client && refusalOfRow(mapped, client);
    if (refusal !== undefined) return rejected(refusal);
    const owner = mapped.tenant ?? tenant;
    if (mapped.kind === 'unchanged') return { tenant: owner, change: mapped };
    if (mapped.kind === 'rejected') return { tenant: owner, change: { ...mapped, source } };
    return { tenant: owner, change: { kind: 'change', change: mapped.change, source } };
  });
}

function changeOfLine(
  { line, identity, correlationId }: RejectedContent,
  { client, mapping }: RetrySource & { client: RecordingClient | undefined },
  source: ChangeSource,
): IncomingChange {
  // A mask may be newer than the line. Lines not from clients come from rows, so the rules of tables apply too.
  const rules = mapping && (client === undefined ? rulesOfDocuments(mapping) : mapping.entities);
  const read = readImportLine(Buffer.from(line), new JsonTape(), undefined, rules);
  const sourceIdentity = identity === undefined ? undefined : Buffer.from(identity, 'hex');
  const checked = client === undefined ? read : changeOfClient(withOwnActor(read, client), client, sourceIdentity);
  if (checked.kind === 'rejected') return { ...checked, source };
  if (checked.kind === 'unchanged') return checked;
  const change = sourceIdentity === undefined ? checked.change : { ...checked.change, identity: sourceIdentity };
  return { kind: 'change', change: withDerivedCorrelation(change, correlationId), source };
}

/** A line that did not say who made the change was stored with the name of its client. */
function withOwnActor(read: ImportedLine, { name }: RecordingClient): ImportedLine {
  if (read.kind !== 'change') return read;
  const { actor, actorId, onBehalfOf } = read.change;
  return actor === name && actorId === undefined && onBehalfOf === undefined ? { ...read, hasActor: false } : read;
}
