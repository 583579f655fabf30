import { hash } from 'node:crypto';
import { TimeSlice } from '../concurrency/time-slice.ts';
import type { DatabaseTransaction } from '../db/database.ts';
import { parseJson } from '../json/parse.ts';
import {
  type BatchCounts,
  type GivenBatch,
  type GivenChange,
  type RejectedChange,
  RejectedChangesError,
  type TakeChanges,
  type TakenBatch,
} from '../recording/batch.ts';
import { type Change, contentOf, differenceOfChange, identityLength } from '../recording/change.ts';
import { changeOfSnapshot } from '../recording/mapping/snapshot-change.ts';
import { currentDocuments, existingDocuments } from '../recording/rebuild/current-documents.ts';
import type { ReadChange } from './read-change.ts';

type Snapshot = Extract<ReadChange, { kind: 'snapshot' }>;
type Truncate = Extract<ReadChange, { kind: 'truncate' }>;

/** A change as the route hands it over, with the place of its event in the body. */
export type Recordable = { index: number } & (GivenChange | Snapshot | Truncate);

/** Documents that are deleted at once. */
const pageSize = 500;

/**
 * Records what was read of a body, in its order, in the caller's transaction: rows of snapshots and truncates by what the history has.
 * Throws `RejectedChangesError` as `TakeChanges` does; its places, and those of the result, are those of the body.
 */
export async function recordRead(
  transaction: DatabaseTransaction,
  take: TakeChanges,
  { changes, actor, ...batch }: Omit<GivenBatch, 'changes'> & { changes: readonly Recordable[]; actor: string },
): Promise<TakenBatch> {
  const counts: BatchCounts = {
    read: 0,
    recorded: 0,
    unchanged: 0,
    duplicate: 0,
    expired: 0,
    ignored: 0,
    rejected: 0,
  };
  const rejected: RejectedChange[] = [];
  const taking = async (given: readonly (GivenChange & { index: number })[]) => {
    const inBody = (list: readonly RejectedChange[]) =>
      list.map(({ index, reason }) => ({ index: given[index]?.index ?? index, reason }));
    try {
      const taken = await take(transaction, { ...batch, changes: given });
      for (const name of countNames) counts[name] += taken.counts[name];
      rejected.push(...inBody(taken.rejected));
    } catch (error) {
      if (!(error instanceof RejectedChangesError)) throw error;
      throw new RejectedChangesError([...rejected, ...inBody(error.rejected)], error.isFull);
    }
  };
  for (const part of partsOf(changes)) {
    const [first] = part;
    if (first?.kind === 'truncate') await deleteAll(transaction, batch.tenant, { ...first, actor }, taking);
    else if (first?.kind === 'snapshot') {
      await taking(await compared(transaction, batch.tenant, part.filter(isSnapshot)));
    } else await taking(part.filter(isGiven));
  }
  return { counts, rejected };
}

const countNames = ['read', 'recorded', 'unchanged', 'duplicate', 'expired', 'ignored', 'rejected'] as const;

/** What can be recorded at once: a truncate by itself, rows of a snapshot together, other changes together. */
function partsOf(changes: readonly Recordable[]): Recordable[][] {
  const parts: Recordable[][] = [];
  for (const change of changes) {
    const last = parts.at(-1);
    const [first] = last ?? [];
    const isLike = first !== undefined && first.kind !== 'truncate' && isSnapshot(first) === isSnapshot(change);
    if (isLike && change.kind !== 'truncate') last?.push(change);
    else parts.push([change]);
  }
  return parts;
}

function isSnapshot(change: Recordable): change is Snapshot & { index: number } {
  return change.kind === 'snapshot';
}

function isGiven(change: Recordable): change is GivenChange & { index: number } {
  return change.kind !== 'snapshot' && change.kind !== 'truncate';
}

/** A row of a snapshot is a create, an update or no change, by what the history has of its document. */
async function compared(
  transaction: DatabaseTransaction,
  tenant: string,
  snapshots: readonly (Snapshot & { index: number })[],
): Promise<(GivenChange & { index: number })[]> {
  const given: (GivenChange & { index: number })[] = [];
  const slice = new TimeSlice();
  for (const [entity, some] of Map.groupBy(snapshots, ({ document }) => document.entity)) {
    const ids = some.map(({ document }) => document.entityId);
    const stored = await currentDocuments(transaction, tenant, entity, ids);
    for (const [place, { index, document }] of some.entries()) {
      if (slice.isDue) await slice.rest();
      const change = changeOfSnapshot(document, stored[place]?.document);
      if (change === 'unchanged') given.push({ index, kind: 'unchanged' });
      else given.push({ index, ...givenChange(change) });
    }
  }
  return given.sort((one, other) => one.index - other.index);
}

/** Deletes all documents of an entity that exist. The identity of each delete is made of the event's, so a repeat records none twice. */
async function deleteAll(
  transaction: DatabaseTransaction,
  tenant: string,
  { index, entity, at, identity, actor }: Truncate & { index: number; actor: string },
  taking: (given: readonly (GivenChange & { index: number })[]) => Promise<void>,
): Promise<void> {
  const slice = new TimeSlice();
  let deleted = 0;
  let after: string | undefined;
  do {
    const { entityIds, next } = await existingDocuments(transaction, tenant, entity, after, pageSize);
    const documents = await currentDocuments(transaction, tenant, entity, entityIds);
    const deletes: (GivenChange & { index: number })[] = [];
    for (const [place, entityId] of entityIds.entries()) {
      if (slice.isDue) await slice.rest();
      const document = documents[place]?.document;
      const difference = differenceOfChange(
        'delete',
        document === undefined ? undefined : parseJson(document),
        undefined,
      );
      const own = hash('sha256', `annals:truncate:${Buffer.from(identity).toString('hex')}:${entityId}`, 'buffer');
      const change: Change = {
        identity: own.subarray(0, identityLength),
        at,
        type: 'delete',
        entity,
        entityId,
        actor,
        related: [],
        ...(difference === undefined ? { paths: '{}' } : contentOf(difference)),
      };
      deletes.push({ index, ...givenChange(change) });
    }
    if (deletes.length > 0) await taking(deletes);
    deleted += deletes.length;
    after = next;
  } while (after !== undefined);
  if (deleted === 0) await taking([{ index, kind: 'ignored' }]);
}

function givenChange(change: Change): GivenChange {
  const { entity } = change;
  return { kind: 'change', change, source: { position: `a document of ${entity}`, line: () => undefined } };
}
