import type { RecordBatch } from '../recording/change.ts';

// So many entries are folded at once: more make folding cheaper, fewer make queries cheaper meanwhile.
const entriesAtOnce = 200_000;

/**
 * A recorder that folds as it goes, for an import that may run where no service does it. `finish` folds what is left.
 * Whether folding succeeds is no matter of the import: totals are exact without it, and it is done again.
 */
export function foldAlong(
  record: RecordBatch,
  fold: () => Promise<unknown>,
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

  return {
    async record(batch) {
      const outcomes = await record(batch);
      unfolded += outcomes.filter((outcome) => outcome === 'recorded').length;
      if (unfolded >= entriesAtOnce && folding === undefined) foldNow();
      return outcomes;
    },
    async finish() {
      await folding;
      if (unfolded > 0) await foldNow();
    },
  };
}
