import type { Metrics } from './metrics.ts';

/** How many changes of a batch ended in which way. */
interface Outcomes {
  readonly recorded: number;
  readonly unchanged: number;
  readonly duplicate: number;
  readonly expired: number;
  readonly ignored: number;
  readonly rejected: number;
}

/** Counts the changes of batches by way and outcome. */
export function takenObserver(metrics: Metrics): (way: string, outcomes: Outcomes) => void {
  return (way, { recorded, unchanged, duplicate, expired, ignored, rejected }) => {
    for (const [outcome, count] of Object.entries({ recorded, unchanged, duplicate, expired, ignored, rejected })) {
      metrics.count('annals_changes_total', { way, outcome }, count);
    }
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
