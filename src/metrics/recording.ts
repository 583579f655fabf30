import type { Metrics } from './metrics.ts';

/** The outcomes of a change of a batch. */
const outcomes = ['recorded', 'unchanged', 'duplicate', 'expired', 'ignored', 'rejected'] as const;

/** Counts the changes of batches by way and outcome. */
export function takenObserver(
  metrics: Metrics,
): (way: string, counts: Readonly<Record<(typeof outcomes)[number], number>>) => void {
  return (way, counts) => {
    for (const outcome of outcomes) metrics.count('annals_changes_total', { way, outcome }, counts[outcome]);
  };
}

/** Counts folds, folded changes and failures. */
export function foldObserver(metrics: Metrics): { onFolded(entries: number): void; onFailure(): void } {
  metrics.count('annals_folds_total', {}, 0);
  metrics.count('annals_folded_changes_total', {}, 0);
  metrics.count('annals_fold_failures_total', {}, 0);
  return {
    onFolded(entries) {
      metrics.count('annals_folds_total', {});
      metrics.count('annals_folded_changes_total', {}, entries);
    },
    onFailure: () => metrics.count('annals_fold_failures_total', {}),
  };
}
