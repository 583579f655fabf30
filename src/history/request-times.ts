import { invalidField } from '../core/errors.ts';
import { type Instant, parseInstant } from '../query/instant.ts';
import type { DocumentRequest } from './documents/document-at.ts';
import { type Calendar, calendarOf } from './search/histogram.ts';

/** A moment (RFC 3339) of a parameter. Throws validation_violation, which names the parameter. */
function instantOf(parameter: string, text: string): Instant {
  const instant = parseInstant(text);
  if (typeof instant !== 'string') return instant;
  throw invalidField(parameter, `${parameter} must be ${instant}`);
}

/** The first millisecond that is not before a moment of a parameter. */
export function firstMillisecondFrom(parameter: string, text: string): number {
  const { whole, millisecond } = instantOf(parameter, text);
  return whole ? millisecond : millisecond + 1;
}

/** The calendar of a time zone. Throws validation_violation for an unknown one. */
export function calendarIn(timeZone: string): Calendar {
  const calendar = calendarOf(timeZone);
  if (calendar !== undefined) return calendar;
  throw invalidField('timeZone', 'timeZone must be an IANA time zone, such as Europe/Berlin');
}

/** The time of a document: a moment (default: now) or a number of changes. Both are a validation_violation. */
export function documentTime(
  { at, changes }: { at?: string | undefined; changes?: number | undefined },
  now: () => number,
): DocumentRequest['when'] {
  if (changes === undefined) return { at: at === undefined ? now() : instantOf('at', at).millisecond };
  if (at !== undefined) throw invalidField('changes', 'changes and at cannot be given together');
  return { changes };
}
