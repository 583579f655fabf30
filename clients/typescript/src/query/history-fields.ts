import { type Presence, type Regex, type TextValue, textTerm } from './pattern.ts';
import { Query } from './query.ts';
import { contextField } from './written.ts';

/** Entries of one of these entity types: `entity('order', 'quote')`. */
export function entity(...values: readonly (TextValue | Regex)[]): Query {
  return new Query([textTerm('entity', values)]);
}

/** Entries of one of these documents. The service wants an `entity` beside it. */
export function entityId(...values: readonly (TextValue | Regex)[]): Query {
  return new Query([textTerm('entityId', values)]);
}

/** Entries of one of these actors: `actor('Jane Doe')`, `actor(glob('Jane *'))`. */
export function actor(...values: readonly (TextValue | Regex)[]): Query {
  return new Query([textTerm('actor', values)]);
}

/**
 * Entries by actors with one of these ids: all changes of a person, whatever their name was.
 *
 * @example
 * and(actorId('u-17'), onBehalfOf(anyValue));
 */
export function actorId(...values: readonly (TextValue | Regex)[] | readonly [Presence]): Query {
  return new Query([textTerm('actorId', values)]);
}

/** Entries whose actor acted for one of these people, by name. */
export function onBehalfOf(...values: readonly (TextValue | Regex)[] | readonly [Presence]): Query {
  return new Query([textTerm('onBehalfOf', values)]);
}

/** Entries whose actor acted for one of these people, by id. */
export function onBehalfOfId(...values: readonly (TextValue | Regex)[] | readonly [Presence]): Query {
  return new Query([textTerm('onBehalfOfId', values)]);
}

/** Entries of one of these requests or transactions. The service takes no patterns here. */
export function correlationId(...values: readonly string[] | readonly [Presence]): Query {
  return new Query([textTerm('correlationId', values)]);
}

/**
 * Entries by a member of their context: a string, a number or a boolean, as the text that JSON has without quotes. Needs
 * the right to read contexts.
 *
 * @example
 * context('ip', glob('203.0.113.*'));
 * context('user-agent', noValue);
 */
export function context(name: string, ...values: readonly (TextValue | Regex)[] | readonly [Presence]): Query {
  return new Query([textTerm(contextField(name), values)]);
}

/** Entries of one of these kinds. */
export function changeType(...values: readonly ('create' | 'update' | 'delete')[]): Query {
  return new Query([textTerm('type', values)]);
}

/** Entries with a related item of one of these entity types. */
export function relatedEntity(...values: readonly (TextValue | Regex)[]): Query {
  return new Query([textTerm('related.entity', values)]);
}

/** Entries with a related item of one of these ids. Beside `relatedEntity` two different items may match. */
export function relatedEntityId(...values: readonly (TextValue | Regex)[]): Query {
  return new Query([textTerm('related.entityId', values)]);
}

export interface RelatedItemMatch {
  readonly entity?: TextValue | Regex | undefined;
  readonly entityId?: TextValue | Regex | undefined;
}

/**
 * Entries with one related item that satisfies all of this.
 *
 * @example
 * elemMatch({ entity: 'group', entityId: 'baristas' });
 */
export function elemMatch({ entity: type, entityId: id }: RelatedItemMatch): Query {
  const terms = [
    ...(type === undefined ? [] : [textTerm('entity', [type])]),
    ...(id === undefined ? [] : [textTerm('entityId', [id])]),
  ];
  if (terms.length === 0) throw new TypeError('elemMatch() needs an entity, an entityId or both.');
  return new Query([`related:elemMatch(${terms.join(' ')})`]);
}

/** A Date, or a time as RFC 3339 has it, with up to 9 digits of a second. */
export type Time = Date | string | { toString(): string };

/**
 * When the change occurred. A `from` or `after` that stands in no `or` replaces the window of 30 days that the service
 * sets otherwise.
 *
 * @example
 * and(entity('order'), occurredAt.between('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'));
 */
export const occurredAt = {
  /** At this time or later. */
  from: (time: Time) => new Query([`occurredAt:>=${timeText(time)}`]),
  /** Later than this time. */
  after: (time: Time) => new Query([`occurredAt:>${timeText(time)}`]),
  /** Earlier than this time. */
  before: (time: Time) => new Query([`occurredAt:<${timeText(time)}`]),
  /** At this time or earlier. */
  until: (time: Time) => new Query([`occurredAt:<=${timeText(time)}`]),
  /** At `from` or later, and earlier than `before`. */
  between: (from: Time, before: Time) => new Query([`occurredAt:(>=${timeText(from)} AND <${timeText(before)})`]),
} as const;

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;

function timeText(time: Time): string {
  const text = time instanceof Date ? time.toISOString() : String(time);
  if (!rfc3339.test(text)) throw new TypeError(`${JSON.stringify(text)} is not a time such as 2026-08-31T12:00:00Z.`);
  return `"${text}"`;
}
