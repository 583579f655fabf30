import { type FieldValue, literal, ValueCondition } from './document-fields.ts';
import { Glob, type Regex, type TextValue, textTerm } from './pattern.ts';
import { or, Query } from './query.ts';
import { bareGlob } from './written.ts';

/**
 * Entries that changed one of these paths. A text also finds the paths beneath it: `path('price')` finds
 * `price.amount`. Patterns match the whole path alone. A place in an array is a number:
 * `path(glob('items.*.quantity'))`.
 */
export function path(...values: readonly (TextValue | Regex)[]): Query {
  const texts = values.filter((one) => typeof one === 'string');
  if (texts.length === 0 || texts.length === values.length) return new Query([textTerm('path', values)]);
  // A text in an expression would not find what is beneath it.
  return or(path(...texts), path(...values.filter((one) => typeof one !== 'string')));
}

/** A value before or after a change. Numbers equal numbers by value, and strings equal strings. */
export type SideValue = FieldValue | null | Glob;

/** One of these values, or a condition that `value` makes. */
export type Side = SideValue | readonly SideValue[] | ValueCondition;

export interface PathChange {
  /** Exactly this path, or one of these; not the paths beneath it. */
  readonly path?: TextValue | Regex | readonly (TextValue | Regex)[] | undefined;
  readonly before?: Side | undefined;
  readonly after?: Side | undefined;
  /** Whether the number after is lower or higher than the number before. */
  readonly is?: 'lower' | 'higher' | undefined;
}

/**
 * Entries with one path that satisfies all of this.
 *
 * @example
 * changed({ path: 'status', before: 'OPEN', after: ['PAID', 'SENT'] });
 * changed({ path: 'price.amount', is: 'lower' });
 */
export function changed({ path: paths, before, after, is }: PathChange): Query {
  const terms = [
    ...(paths === undefined ? [] : [textTerm('path', listOf(paths))]),
    ...sideTerm('before', before),
    ...sideTerm('after', after),
    ...(is === undefined ? [] : [`is:${is}`]),
  ];
  if (terms.length === 0) throw new TypeError('changed() needs a path, a value before or after, or is.');
  return new Query([`change:elemMatch(${terms.join(' ')})`]);
}

function sideTerm(name: 'before' | 'after', side: Side | undefined): string[] {
  if (side === undefined) return [];
  if (side instanceof ValueCondition) return [`${name}:${side.text}`];
  const written = listOf(side).map(sideText);
  if (written.length === 0) throw new TypeError(`${name} needs at least one value.`);
  return [written.length === 1 ? `${name}:${written[0]}` : `${name}:(${written.join(', ')})`];
}

function sideText(given: SideValue): string {
  if (given === null) return 'null';
  return given instanceof Glob ? globText(given) : literal(given);
}

/** Values take no regular expressions, which could stand for such a pattern elsewhere. */
function globText(pattern: Glob): string {
  const text = bareGlob(pattern.parts);
  if (text !== undefined) return text;
  throw new TypeError(`The query language cannot write the pattern ${pattern.parts.join('*')} for a value.`);
}

function listOf<Value>(given: Value | readonly Value[]): readonly Value[] {
  return Array.isArray(given) ? given : [given as Value];
}
