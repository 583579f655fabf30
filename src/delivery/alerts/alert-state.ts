import type { ReadingPosition } from '../changes.ts';

/** An alert is raised by `count` matching changes whose times are within `minutes`. */
export interface AlertThreshold {
  readonly count: number;
  readonly minutes: number;
}

/** A matching change that has not raised the alert yet. */
export interface CountedMatch {
  /** The time of the change, in milliseconds. */
  readonly at: number;
  /** The position before it. */
  readonly after: ReadingPosition;
}

/** The changes of the next e-mail. */
export interface RaisedAlert {
  /** The position before the first of them. */
  readonly after: ReadingPosition;
  readonly count: number;
  /** The earliest and latest time of these changes, in milliseconds. */
  readonly from: number;
  readonly to: number;
}

/** The counting state of an alert. Contains no values of the history. */
export interface AlertState {
  /** By the time of the change, oldest first. */
  readonly recent: readonly CountedMatch[];
  readonly raised: RaisedAlert | undefined;
  /** When the last e-mail was queued, in milliseconds. */
  readonly mailedAt: number | undefined;
}

export const nothingCounted: AlertState = { recent: [], raised: undefined, mailedAt: undefined };

/** Milliseconds between e-mails of one alert. */
export const mailPause = 10 * 60_000;

/**
 * Counts changes by their own times, so a source that catches up raises the same alerts. Further changes join a raised
 * alert until the e-mail is queued.
 */
export function countMatches(
  state: AlertState,
  matches: readonly CountedMatch[],
  { count, minutes }: AlertThreshold,
): AlertState {
  const recent = [...state.recent];
  let raised = state.raised;
  for (const match of matches) {
    if (raised !== undefined) {
      raised = withMatch(raised, match);
      continue;
    }
    const place = recent.findLastIndex(({ at }) => at <= match.at) + 1;
    recent.splice(place, 0, match);
    const within = windowAround(recent, place, minutes * 60_000);
    if (within.length >= count) {
      raised = raisedBy(within);
      recent.length = 0;
    }
    // Fewer than `count` are in the newest window. The rest arrived late and form a window of their own.
    if (recent.length > 2 * count) recent.shift();
  }
  return { ...state, recent, raised };
}

/** When the e-mail of a raised alert may be sent, in milliseconds; undefined if there is none. */
export function mailDueAt({ raised, mailedAt }: AlertState): number | undefined {
  if (raised === undefined) return undefined;
  return mailedAt === undefined ? 0 : mailedAt + mailPause;
}

export function afterMail(state: AlertState, now: number): AlertState {
  return { ...state, raised: undefined, mailedAt: now };
}

/** The largest window of that length that contains the match at `place`. */
function windowAround(sorted: readonly CountedMatch[], place: number, length: number): readonly CountedMatch[] {
  const time = (index: number) => sorted[index]?.at ?? Number.NaN;
  let best: readonly CountedMatch[] = [];
  let end = place;
  for (let begin = 0; begin <= place; begin++) {
    if (time(place) - time(begin) >= length) continue;
    while (end < sorted.length && time(end) - time(begin) < length) end++;
    if (end - begin > best.length) best = sorted.slice(begin, end);
  }
  return best;
}

function raisedBy(matches: readonly CountedMatch[]): RaisedAlert {
  const [{ after, at: from } = { after: { position: 0, fingerprint: 0 }, at: 0 }] = matches;
  const first = { after, count: 0, from, to: from };
  return matches.reduce<RaisedAlert>(withMatch, first);
}

function withMatch({ after, count, from, to }: RaisedAlert, match: CountedMatch): RaisedAlert {
  return {
    after: match.after.position < after.position ? match.after : after,
    count: count + 1,
    from: Math.min(from, match.at),
    to: Math.max(to, match.at),
  };
}
