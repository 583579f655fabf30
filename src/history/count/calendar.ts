/** Where the days of a time zone begin. Days are numbered from 1970-01-01, which is 0; moments are milliseconds since 1970. */
export interface Calendar {
  /** The day that a moment is in. */
  dayOf(moment: number): number;
  /** The first moment of a day. Of a day that the zone has skipped: the first moment after it. */
  beginOf(day: number): number;
}

const lengthOfDay = 86_400_000;
const firstDay = new Temporal.PlainDate(1970, 1, 1);

export const utcCalendar: Calendar = {
  dayOf: (moment) => Math.floor(moment / lengthOfDay),
  beginOf: (day) => day * lengthOfDay,
};

/**
 * The calendar of an IANA time zone, with its days of 23 and 25 hours. Returns undefined where there is no such zone.
 *
 * @example
 * calendarOf('Europe/Berlin')?.beginOf(0); // -3_600_000
 */
export function calendarOf(timeZone: string): Calendar | undefined {
  if (!isZone(timeZone)) return undefined;
  return {
    dayOf: (moment) => {
      const { offsetNanoseconds } = Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(timeZone);
      return utcCalendar.dayOf(moment + offsetNanoseconds / 1e6);
    },
    beginOf: (day) => firstDay.add({ days: day }).toZonedDateTime(timeZone).epochMilliseconds,
  };
}

/** An offset such as `+02:00` names no zone: nobody could say when its days are longer. */
function isZone(text: string): boolean {
  if (!/^[A-Za-z]/.test(text)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
