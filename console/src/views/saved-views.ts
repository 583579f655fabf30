import { type TimeBounds, timeText } from '../components/times.ts';
import { allTime, lastDays, timeChoices } from '../history/time-choices.ts';
import { boundsOfTime, hasFromBound, joined, withTime, writtenTime } from '../query-text/edit-query.ts';

/** A query without its time, and the range of a view for that time. */
interface DividedQuery {
  readonly q: string;
  readonly range: string;
}

/** Divides a query for a view. A time within an hour of a choice becomes that choice; other terms stay in the query. */
export function divided(q: string, now: number): DividedQuery {
  const bounds = boundsOfTime(q);
  if (bounds !== undefined) return { q: withTime(q, {}), range: rangeOf(bounds, now) };
  return { q, range: hasFromBound(q) ? 'all' : 'P30D' };
}

/** Milliseconds. */
const hour = 3_600_000;

function rangeOf({ from, before }: TimeBounds, now: number): string {
  if (from === undefined) return 'P30D';
  const chosen = timeChoices.find(({ range, bounds }) => {
    const of = bounds(now);
    if (of.from === undefined || momentOfText(of.before) !== momentOfText(before)) return false;
    const age = Date.parse(of.from) - Date.parse(from);
    return range.startsWith('P') ? age >= 0 && age < hour : age === 0;
  });
  return chosen?.range ?? `${from}/${before ?? '..'}`;
}

function momentOfText(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** The query of a view at a moment, in milliseconds since 1970. */
export function queryOfView({ q, range }: DividedQuery, now: number): string {
  const bounds = boundsOfRange(range, now);
  // The service looks at the last 30 days by itself, and at all time where the query says when it begins.
  const isImplied = hasFromBound(q) ? bounds.from === allTime && bounds.before === undefined : range === 'P30D';
  return isImplied ? q : joined(q, writtenTime(bounds));
}

function boundsOfRange(range: string, now: number): TimeBounds {
  const days = /^P(\d+)D$/.exec(range)?.[1];
  if (days !== undefined) return lastDays(Number(days), now);
  const chosen = timeChoices.find((choice) => choice.range === range);
  if (chosen !== undefined) return chosen.bounds(now);
  const [from, before] = range.split('/');
  return { from, before: before === '..' ? undefined : before };
}

/** A range in words. */
export function rangeText(range: string): string {
  const days = /^P(\d+)D$/.exec(range)?.[1];
  if (days !== undefined) return days === '1' ? 'the last 24 hours' : `the last ${days} days`;
  const words = timeChoices.find((choice) => choice.range === range)?.words;
  if (words !== undefined) return words;
  const [from = '', before = ''] = range.split('/');
  return before === '..' ? `from ${timeText(from)} on` : `from ${timeText(from)} to ${timeText(before)}`;
}

/** What of a view its place depends on. */
interface Placed {
  readonly id: string;
  readonly position: number;
}

/**
 * The new positions after one of the ordered views moves to another place: one if a number fits between its new
 * neighbours, else all are renumbered.
 *
 * @example
 * positionsAfterMove([{ id: 'a', position: 1 }, { id: 'b', position: 2 }, { id: 'c', position: 3 }], 2, 1); // [{ id: 'c', position: 1.5 }]
 */
export function positionsAfterMove(views: readonly Placed[], from: number, to: number): Placed[] {
  const moved = views[from];
  if (moved === undefined || from === to) return [];
  const rest = views.toSpliced(from, 1);
  const before = rest[to - 1]?.position;
  const after = rest[to]?.position;
  const position =
    before === undefined ? (after ?? 0) - 1 : after === undefined ? before + 1 : before + (after - before) / 2;
  const fits = (before === undefined || before < position) && (after === undefined || position < after);
  if (fits) return [{ id: moved.id, position }];
  return rest
    .toSpliced(to, 0, moved)
    .map(({ id }, index) => ({ id, position: index + 1 }))
    .filter((placed) => views.some(({ id, position: was }) => placed.id === id && placed.position !== was));
}
