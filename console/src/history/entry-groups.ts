import { computed } from '@preact/signals';
import type { Entry } from '../api/history-reads.ts';
import { storedChoice } from '../components/stored-choice.ts';

/** Consecutive entries of a list with the same correlation, or one entry. Newest first. */
export interface EntryGroup {
  /** Undefined for a single entry. */
  readonly correlationId: string | undefined;
  /** Stays the same when newer entries join. */
  readonly key: string;
  readonly entries: readonly Entry[];
}

/** The runs of entries with the same correlation. Their order stays: joined, the groups are the list. */
export function groupsOf(entries: readonly Entry[]): EntryGroup[] {
  const runs: Entry[][] = [];
  for (const entry of entries) {
    const run = runs.at(-1);
    const belongs = entry.correlationId !== undefined && run?.[0]?.correlationId === entry.correlationId;
    if (belongs) run?.push(entry);
    else runs.push([entry]);
  }
  return runs.map((run) => ({
    correlationId: run.length > 1 ? run[0]?.correlationId : undefined,
    key: run.at(-1)?.ref ?? '',
    entries: run,
  }));
}

const grouping = storedChoice('annals.group', ['on', 'off']);

/** Whether lists show entries with the same correlation as one. */
export const isGrouped = computed(() => grouping.value.value === 'on');

export function groupEntries(on: boolean): void {
  grouping.choose(on ? 'on' : 'off');
}
