import { staff } from '../../../src/demo/people.ts';

/** Queries of one class, none of which is asked twice. */
export interface SizeQuestion {
  row: string;
  read: 'first page' | 'middle page' | 'total' | 'histogram';
  q: (number: number) => string;
}

interface Known {
  /** Milliseconds since 1970 of the last entry. */
  now: number;
  actors: readonly string[];
}

const minute = 60_000;
const month = 30 * 86_400_000;
const entities = ['order', 'customer', 'product', 'segment', 'quote', 'company', 'coupon', 'group-assignment'];
/** Each of them is the actor of far more entries than a customer. */
const colleagues = Object.values(staff).flat();
const types = ['update', 'create', 'delete'];

/** What is asked at each size. The numbers of one size begin at 0, so that each size answers queries of the same kinds. */
export function sizeQuestions({ now, actors }: Known): SizeQuestion[] {
  const month30 = (number: number) => `occurredAt:>="${new Date(now - month - number * minute).toISOString()}"`;
  const whole = (number: number) => `occurredAt:>="${new Date(minute * number).toISOString()}"`;
  const actor = (number: number) => named(actors[number % actors.length]);
  const entity = (number: number) => `entity:${entities[number % entities.length]}`;
  const colleague = (number: number) => named(colleagues[number % colleagues.length]);
  const type = (number: number) => `type:${types[number % types.length]}`;
  const glob = (number: number) => `actor:${actors[(7 * number) % actors.length]?.slice(0, 2)}*`;
  return [
    { row: 'no filter, 30 days', read: 'first page', q: month30 },
    { row: 'no filter, whole history', read: 'first page', q: whole },
    {
      row: 'entity and a customer as actor, whole history',
      read: 'first page',
      q: (n) => `${entity(n)} ${actor(n)} ${whole(n)}`,
    },
    { row: 'no filter, whole history', read: 'middle page', q: whole },
    { row: 'entity and type, whole history', read: 'middle page', q: (n) => `${entity(n)} ${type(n)} ${whole(n)}` },
    {
      row: 'order and one of 17 colleagues, whole history',
      read: 'middle page',
      q: (n) => `entity:order ${colleague(n)} ${whole(n)}`,
    },
    { row: 'a customer as actor, 30 days', read: 'total', q: (n) => `${actor(n)} ${month30(n)}` },
    { row: 'a customer as actor, whole history', read: 'total', q: (n) => `${actor(n)} ${whole(n)}` },
    {
      row: 'one of 17 colleagues and a type, whole history',
      read: 'total',
      q: (n) => `${colleague(n)} ${type(n)} ${whole(n)}`,
    },
    { row: 'prefix of actors and a type, whole history', read: 'total', q: (n) => `${glob(n)} ${type(n)} ${whole(n)}` },
    { row: 'no filter, 30 days', read: 'histogram', q: month30 },
    { row: 'no filter, whole history', read: 'histogram', q: whole },
    { row: 'entity, whole history', read: 'histogram', q: (n) => `${entity(n)} ${whole(n)}` },
    { row: 'one of 17 colleagues, whole history', read: 'histogram', q: (n) => `${colleague(n)} ${whole(n)}` },
  ];
}

function named(actor = ''): string {
  return `actor:"${actor.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
