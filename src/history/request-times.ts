import { invalidField } from '../core/errors.ts';
import { type Instant, parseInstant } from '../query/instant.ts';
import type { DocumentRequest } from './documents/document-at.ts';
import { type Calendar, calendarOf } from './search/histogram.ts';

/** The millisecond that holds a moment (RFC 3339) of a parameter. Throws validation_violation, which names the parameter. */
function millisecondOf(parameter: string, text: string): number {
  return instantOf(parameter, text).millisecond;
}

/** The first millisecond that is not before a moment of a parameter. Throws as `millisecondOf`. */
export function firstMillisecondFrom(parameter: string, text: string): number {
  const instant = instantOf(parameter, text);
  return instant.whole ? instant.millisecond : instant.millisecond + 1;
}

/** The calendar of a time zone. Throws validation_violation where there is no such zone. */
export function calendarIn(timeZone: string): Calendar {
  const calendar = calendarOf(timeZone);
  if (calendar === undefined)
    throw invalidField('timeZone', 'timeZone must be an IANA time zone, such as Europe/Berlin');
  return calendar;
}

/** When a document is asked for: at a moment, now unless given, or after so many changes. Throws validation_violation for both. */
export function documentTime(
  { at, changes }: { at?: string | undefined; changes?: number | undefined },
  now: () => number,
): DocumentRequest['when'] {
  if (changes === undefined) return { at: at === undefined ? now() : millisecondOf('at', at) };
  if (at !== undefined) throw invalidField('changes', 'changes and at cannot be given together');
  return { changes };
}

function instantOf(parameter: string, text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant !== 'string') return instant;
  throw invalidField(parameter, `${parameter} must be ${instant}`);
}
