import type { Change, Outcome, RecordChanges } from '../../recording/change.ts';

// Entries of one fold. Fewer make queries cheaper during the import and leave less to fold at the end, when nothing is
// recorded in parallel. The cost per entry is the same as in a much larger fold.
const entriesAtOnce = 50_000;

/** Work at the end of an import: indexes and statistics. */
interface TableUpkeep {
  /** For the tables of recording; runs in parallel to the last fold. */
  ofEntries(): Promise<unknown>;
  /** For the tables of folding; runs after the last fold. */
  ofTallies(): Promise<unknown>;
}

/**
 * A recorder that folds while it records, for an import without a running service. `finish` folds the rest and does the
 * upkeep of the tables. Failures are ignored: totals are exact without folding, and a later fold does the work.
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
