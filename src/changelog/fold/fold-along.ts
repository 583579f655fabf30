import type { Change, Outcome, RecordBatch } from '../../recording/change.ts';

// So many entries are folded at once: fewer make queries cheaper meanwhile, and leave less to fold at the end, when nothing
// is recorded beside it any more. A fold of these costs as much an entry as one of many more.
const entriesAtOnce = 50_000;

/**
 * A recorder that folds as it goes, for an import that may run where no service does it. `finish` folds what is left and analyses the tables.
 * Whether folding succeeds is no matter of the import: totals are exact without it, and it is done again.
 */
export function foldAlong(
  record: RecordBatch,
  fold: () => Promise<unknown>,
  analyse: () => Promise<unknown> = async () => {},
): { record: RecordBatch; finish(): Promise<void> } {
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
      await folding;
      if (unfolded > 0) await foldNow();
      await analyse().catch(() => {});
    },
  };
}
