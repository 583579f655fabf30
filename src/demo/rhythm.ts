import type { Random } from './random.ts';

export const hourInMilliseconds = 3_600_000;
export const dayInMilliseconds = 24 * hourInMilliseconds;

/** Days of the history, today included. */
export const daysOfHistory = 90;

// How busy each hour of the day is (UTC), measured against the other hours of the same kind of day.
const weekdayHours = [1, 0, 3, 0, 0, 1, 3, 9, 14, 16, 15, 11, 9, 13, 15, 13, 10, 6, 4, 5, 6, 5, 3, 2];
const weekendHours = [1, 0, 3, 0, 0, 0, 1, 2, 5, 8, 9, 8, 6, 6, 7, 7, 6, 5, 6, 8, 9, 7, 4, 2];

/** Midnight, UTC, of the day of `time`. */
export function startOfDay(time: number): number {
  return Math.floor(time / dayInMilliseconds) * dayInMilliseconds;
}

function isWeekend(time: number): boolean {
  const weekday = new Date(time).getUTCDay();
  return weekday === 0 || weekday === 6;
}

/** Whether somebody is at a desk: on weekdays from 7 to 17 o'clock, UTC. */
export function isOfficeHour(time: number): boolean {
  const hour = new Date(time).getUTCHours();
  return !isWeekend(time) && hour >= 7 && hour < 17;
}

/**
 * The moments of one day at which something happens in the shop, in order. `age` is how many days the shop has been
 * open: business grows slowly, weekends are quiet.
 */
export function momentsOfDay(midnight: number, age: number, random: Random): number[] {
  const weekend = isWeekend(midnight);
  const usual = weekend ? random.integer(12, 22) : random.integer(44, 62);
  const count = Math.round(usual * (0.8 + (0.4 * age) / daysOfHistory));
  const hours = weekend ? weekendHours : weekdayHours;
  return Array.from(
    { length: count },
    () => midnight + random.weighted(hours) * hourInMilliseconds + random.integer(0, hourInMilliseconds - 1),
  ).sort((first, second) => first - second);
}
