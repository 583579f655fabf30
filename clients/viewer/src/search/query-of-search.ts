import { actor, and, changeType, entity, entityId, occurredAt, type Query } from '@annals/client/query';
import { startOfDay } from '../texts/clock.ts';
import { maxMeanings, queriesOfWords, type WordContext } from './query-of-words.ts';
import type { DocumentId, Search } from './search.ts';

export interface SearchContext extends WordContext {
  /** When the search began, in milliseconds since 1970: the range stays where it is while one reads. */
  readonly begun: number;
  /** The day of `begun` for the reader. */
  readonly today: string;
  readonly zone: string | undefined;
}

/**
 * The query of a form. Each text in it is a value in quotes or in an escaped pattern, whatever it is.
 *
 * @example
 * String(queryOfSearch({ ...searchOf('all'), type: 'create', actor: 'x" OR' }, context));
 * // occurredAt:>="1970-01-01T00:00:00Z" type:"create" actor:"x\" OR"
 */
export function queryOfSearch(search: Search, context: SearchContext): Query {
  // The host's names may have any length: as many are looked for as the query has room for.
  for (let names = maxMeanings; names > 0; names -= 1) {
    const query = queryWithNames(search, context, names);
    if (String(query).length <= maxCharacters) return query;
  }
  return queryWithNames(search, context, 0);
}

/** The service takes 4,096. The list adds a time to the query. */
const maxCharacters = 4_000;

function queryWithNames(search: Search, context: SearchContext, names: number): Query {
  const { type, entity: only, actor: person } = search;
  return and(
    ...queryOfTime(search, context),
    ...(type === '' ? [] : [changeType(type)]),
    ...(only === '' ? [] : [entity(only)]),
    ...(person === '' ? [] : [actor(person)]),
    ...queriesOfWords(search.words, context, names),
  );
}

/** All that ever happened to a document. */
export function queryOfDocument({ entity: type, entityId: id }: DocumentId): Query {
  return and(anyTime, entity(type), entityId(id));
}

/** Without a lower bound the service looks at the last 30 days. */
const anyTime = occurredAt.from('1970-01-01T00:00:00Z');

const daysOfRange = { '7d': 7, '30d': 30, '90d': 90, '1y': 365 } as const;

function queryOfTime({ range, from, to }: Search, { today, zone }: SearchContext): Query[] {
  if (range === 'all') return [anyTime];
  if (range !== 'days') return [occurredAt.from(new Date(startOfDay(daysLater(today, 1 - daysOfRange[range]), zone)))];
  const begin = startOfDay(from, zone);
  const end = startOfDay(daysLater(to, 1), zone);
  return [
    Number.isNaN(begin) ? anyTime : occurredAt.from(new Date(begin)),
    ...(Number.isNaN(end) ? [] : [occurredAt.before(new Date(end))]),
  ];
}

/** The day so many days later; of what is no day, the same. */
function daysLater(day: string, days: number): string {
  const at = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(at) ? day : new Date(at + days * 86_400_000).toISOString().slice(0, 10);
}
