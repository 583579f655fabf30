import type { Change, Outcome, RecordChanges } from '../../recording/change.ts';

// The number of entries in one fold. A smaller number makes queries cheaper during the import and leaves less to fold at
// the end, when nothing is recorded in parallel. The cost per entry is the same as in a much larger fold.
const entriesAtOnce = 50_000;

/** What the end of an import leaves in order for queries: indexes and statistics. */
export interface TableUpkeep {
  /** For the tables that recording writes. It runs in parallel to the last fold. */
  ofEntries(): Promise<unknown>;
  /** For the tables that folding writes. It runs after the last fold. */
  ofTallies(): Promise<unknown>;
}

/**
 * A recorder that folds while it records, for an import that may run where no service folds. `finish` folds the rest and
 * does the upkeep of the tables. The import does not fail if this work fails: totals are exact without folding, and a later
 * fold does the work.
 */
export function foldAlong(
  record: RecordChanges,
  fold: () => Promise<unknown>,
  upkeep?: TableUpkeep,
): { record: RecordChanges; finish(): Promise<void> } {
  let unfolded = 0;
  let folding: Promise<unknown> | undefined;

  function foldNow(): Promise<unknown> {
    unfolded = 0;
    folding = fold()
      .catch(() => {})
      .finally(() => {
        folding = undefined;
      });
    return folding;
  }

  async function foldRest(): Promise<void> {
    await folding;
    if (unfolded > 0) await foldNow();
  }

  async function foldAfter(recording: Promise<readonly Outcome[]>): Promise<readonly Outcome[]> {
    const outcomes = await recording;
    unfolded += outcomes.filter((outcome) => outcome === 'recorded').length;
    if (unfolded >= entriesAtOnce && folding === undefined) void foldNow();
    return outcomes;
  }

  return {
    record: Object.assign((batch: readonly Change[]) => foldAfter(record(batch)), {
      prepare(batch: readonly Change[]) {
        const prepared = record.prepare?.(batch) ?? (() => record(batch));
        return () => foldAfter(prepared());
      },
    }),
    async finish() {
      await Promise.allSettled([upkeep?.ofEntries(), foldRest().then(() => upkeep?.ofTallies())]);
    },
  };
}
