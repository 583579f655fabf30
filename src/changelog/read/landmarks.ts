/** How many entries of some selections the tallies hold at or after a moment (milliseconds since 1970). */
export interface Landmark {
  readonly moment: number;
  readonly rank: number;
}

/** Where to begin to read, and until when at most; null: at the end of the window that is read from, without a limit. */
export interface Way {
  readonly landmark: Landmark | null;
  /** From the landmark towards what is newer; otherwise towards what is older. */
  readonly upward: boolean;
  readonly until: number | null;
}

/** What is looked for: the entries from the one that has `first` newer ones up to, not with, that of `last`. */
export interface Stretch {
  readonly first: number;
  readonly last: number;
  /** Where the window begins, and a landmark soon after. */
  readonly since: number;
  readonly start: Landmark;
  readonly now: number;
}

/** Entries that are read to come from a landmark to a page; one that is farther away is walked to. */
const mostOnTheWay = 200;
const mostLandmarks = 256;

/**
 * What is known of where the entries of some selections stand, as long as the tenant's history has been folded so often.
 * So whoever pages on begins to read where the page before ended, and whoever jumps near to where somebody was.
 */
export class Landmarks {
  readonly folds: number;
  /** The newest first, so that ranks ascend. */
  #landmarks: Landmark[] = [];

  constructor(folds: number) {
    this.folds = folds;
  }

  get size(): number {
    return this.#landmarks.length;
  }

  add(landmark: Landmark): void {
    const place = this.#countFrom(landmark.moment);
    if (this.#landmarks[place - 1]?.moment === landmark.moment) return;
    this.#landmarks.splice(place, 0, landmark);
    // The oldest one is where a window begins, as a rule.
    if (this.size > mostLandmarks) this.#landmarks = this.#landmarks.filter((_, index) => index % 2 === 0);
  }

  /** The oldest one at or after a moment. */
  atOrAfter(moment: number): Landmark | undefined {
    return this.#landmarks[this.#countFrom(moment) - 1];
  }

  hasRank(rank: number): boolean {
    return this.#landmarks.some((landmark) => landmark.rank === rank);
  }

  at(moment: number): Landmark | undefined {
    const found = this.atOrAfter(moment);
    return found?.moment === moment ? found : undefined;
  }

  /** Forgets those before a moment. */
  dropBefore(moment: number): void {
    this.#landmarks.length = this.#countFrom(moment);
  }

  /** The shortest way to a stretch; undefined where none is short. */
  wayTo({ first, last, since, start, now }: Stretch): Way | undefined {
    const known = this.#landmarks.slice(0, this.#countFrom(since));
    const newest = { moment: Math.max(now, start.moment), rank: 0 };
    // Entries of the minute in which the window begins are not counted, and others may wait to be folded.
    const density = start.rank / Math.max(1, newest.moment - start.moment);
    const oldest = { moment: since, rank: start.rank + Math.round(density * (start.moment - since)) };
    const before = known.findLastIndex(({ rank }) => rank <= first);
    const after = known.findIndex(({ rank }) => rank >= last);
    const newer = known[before] ?? newest;
    const older = known[after] ?? oldest;
    const down = first - newer.rank;
    const up = Math.max(0, older.rank - last);
    if (Math.min(down, up) > mostOnTheWay) return undefined;
    // What is known of the way bounds it, however unevenly the entries are spread.
    if (down <= up) {
      const near = known.findLast(({ rank }) => rank < last) ?? newer;
      const until = near.moment - reach(near, older, last - near.rank);
      return { landmark: known[before] ?? null, upward: false, until };
    }
    const near = known.find(({ rank }) => rank > first) ?? { ...older, rank: Math.max(older.rank, last) };
    const until = near.moment + reach(near, newer, near.rank - first);
    return { landmark: known[after] ?? null, upward: true, until };
  }

  /** How many are at or after a moment. */
  #countFrom(moment: number): number {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#landmarks[middle]?.moment ?? 0) >= moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** In how many milliseconds to look for so many entries: twice as many as where they are spread evenly, or all of them. */
function reach(from: Landmark, to: Landmark, wanted: number): number {
  const distance = Math.abs(to.moment - from.moment);
  const entries = Math.abs(to.rank - from.rank);
  const guess = 1_000 + Math.ceil((2 * wanted * distance) / Math.max(1, entries));
  return entries < wanted ? guess : Math.min(guess, distance);
}
