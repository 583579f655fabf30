import { counted } from './numbers.ts';

/** Units of a duration with their lengths in seconds, and how ISO 8601 writes so many of them. */
export const durationUnits = {
  weeks: { seconds: 604_800, iso: (count: string) => `P${count}W` },
  days: { seconds: 86_400, iso: (count: string) => `P${count}D` },
  hours: { seconds: 3_600, iso: (count: string) => `PT${count}H` },
  minutes: { seconds: 60, iso: (count: string) => `PT${count}M` },
  seconds: { seconds: 1, iso: (count: string) => `PT${count}S` },
} as const;

export type DurationUnit = keyof typeof durationUnits;

/** A duration as people say it. The count is a text, so that a half-written one stays as it is; empty: no duration. */
export interface Duration {
  readonly count: string;
  readonly unit: DurationUnit;
}

export const noDuration: Duration = { count: '', unit: 'days' };

const parts = { W: 604_800, D: 86_400, H: 3_600, M: 60, S: 1 } as const;

/**
 * A duration that the service has stored, in the largest unit that tells it whole.
 *
 * @example
 * durationOf('PT90M'); // { count: '90', unit: 'minutes' }
 * durationOf('P1DT12H'); // { count: '36', unit: 'hours' }
 */
export function durationOf(iso: string): Duration {
  const seconds = [...iso.matchAll(/(\d+)([WDHMS])/g)].reduce(
    (sum, [, count, part]) => sum + Number(count) * parts[part as keyof typeof parts],
    0,
  );
  // Fourteen days are said more often than two weeks.
  const units = (['days', 'hours', 'minutes', 'seconds'] as const).filter(
    (whole) => seconds % durationUnits[whole].seconds === 0,
  );
  const unit = iso.endsWith('W') ? 'weeks' : (units[0] ?? 'seconds');
  return { count: String(seconds / durationUnits[unit].seconds), unit };
}

/** A duration as the service takes it; undefined where there is none. */
export function isoOf({ count, unit }: Duration): string | undefined {
  const written = count.trim();
  return written === '' ? undefined : durationUnits[unit].iso(written);
}

/** `1 day`, `90 minutes`. */
export function durationWords(iso: string): string {
  const { count, unit } = durationOf(iso);
  return counted(Number(count), unit.slice(0, -1));
}
