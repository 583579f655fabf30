import type { Interval } from '../ask/tally-plan.ts';

/**
 * The arrays that change_read takes, as texts: the selections of all intervals in one list, their numbers as texts of arrays. The
 * driver would take longer to make the texts, because it does not know that all of this is numbers.
 */
export function intervalColumns(intervals: readonly Interval[]): string[] {
  let [sinces, befores, ends, actorSets, kindSets] = ['', '', '', '', ''];
  let ended = 0;
  for (const { since, before, selections } of intervals) {
    sinces += `,${since}`;
    befores += `,${before ?? 'null'}`;
    for (const { actors, kinds } of selections) {
      actorSets += `,"{${actors?.join(',') ?? '0'}}"`;
      kindSets += `,"{${kinds?.join(',') ?? (actors === null ? '0' : '')}}"`;
    }
    ended += selections.length;
    ends += `,${ended}`;
  }
  return [arrayOf(sinces), arrayOf(befores), arrayOf(ends), arrayOf(actorSets), arrayOf(kindSets)];
}

/** The text of an array whose elements each begin with a comma here. */
function arrayOf(elements: string): string {
  return `{${elements.slice(1)}}`;
}
