import type { Bound, ItemTerm, Matcher } from '../../../src/query/ast.ts';

/** A path of an entry and its values; a value that is absent is undefined. */
export interface Change {
  readonly path: string;
  readonly before: Value | undefined;
  readonly after: Value | undefined;
}

/** A JSON value whose numbers are the texts that they were written in. */
type Value = null | boolean | string | { readonly number: string } | readonly Value[] | { readonly object: true };

/** The paths of an entry, read in the plainest way. */
export function changesOf(paths: string): Change[] {
  const known = read.get(paths);
  if (known !== undefined) return known;
  const changes = parsed(paths);
  read.set(paths, changes);
  return changes;
}

/** A cache: each text is evaluated many times. */
const read = new Map<string, Change[]>();

function parsed(paths: string): Change[] {
  const document = JSON.parse(paths, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' ? { number: context?.source ?? String(value) } : value,
  ) as Record<string, { before?: Value; after?: Value }>;
  return Object.keys(document).map((path) => ({ path, before: document[path]?.before, after: document[path]?.after }));
}

/** Whether the sides of a path satisfy a term on `before` or `after`, or `is`. */
export function sideAccepts(
  term: ItemTerm,
  { before, after }: Change,
  accepts: (matcher: Matcher, value: string) => boolean,
): boolean {
  if (term.kind === 'match' && term.field === 'is') {
    const difference = isNumber(before) && isNumber(after) ? compare(after.number, before.number) : 0;
    return (difference < 0 && accepts(term.matcher, 'lower')) || (difference > 0 && accepts(term.matcher, 'higher'));
  }
  const side = term.field === 'before' ? before : after;
  if (term.kind === 'comparison') {
    return (
      side !== undefined &&
      side !== mask &&
      elements(side).some((value) => term.bounds.every((bound) => inside(value, bound)))
    );
  }
  return sideMatches(term.matcher, side, accepts);
}

const mask = '********';

function sideMatches(
  matcher: Matcher,
  side: Value | undefined,
  accepts: (matcher: Matcher, value: string) => boolean,
): boolean {
  if (matcher.kind === 'list') return matcher.items.some((item) => sideMatches(item, side, accepts));
  const keyword = matcher.kind === 'text' && !matcher.quoted ? matcher.text : undefined;
  if (keyword === 'exists') return side !== undefined;
  if (keyword === 'missing') return side === undefined;
  if (side === undefined || side === mask) return false;
  return elements(side).some((value) => {
    if (keyword === 'null') return value === null;
    if (keyword === 'true' || keyword === 'false') return value === (keyword === 'true');
    if (keyword !== undefined && numeral.test(keyword)) return isNumber(value) && compare(value.number, keyword) === 0;
    return typeof value === 'string' && accepts(matcher, value);
  });
}

/** A value, and where it is an array all that is in it, in arrays within it too. */
function elements(value: Value): Value[] {
  return Array.isArray(value) ? [value, ...value.flatMap(elements)] : [value];
}

function inside(value: Value, { operator, type, text }: Bound): boolean {
  const difference =
    type === 'number'
      ? isNumber(value)
        ? compare(value.number, text)
        : undefined
      : typeof value === 'string'
        ? order(value, text)
        : undefined;
  if (difference === undefined) return false;
  if (operator === '>') return difference > 0;
  if (operator === '>=') return difference >= 0;
  return operator === '<' ? difference < 0 : difference <= 0;
}

function order(one: string, other: string): number {
  const [first, second] = [[...one], [...other]];
  for (const [index, character] of first.entries()) {
    const difference = (character.codePointAt(0) ?? 0) - (second[index]?.codePointAt(0) ?? -1);
    if (difference !== 0) return difference;
  }
  return first.length - second.length;
}

const numeral = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

function isNumber(value: Value | undefined): value is { number: string } {
  return typeof value === 'object' && value !== null && 'number' in value;
}

/** By value, whatever the digits and the exponents. */
function compare(one: string, other: string): number {
  const [first, second] = [normalized(one), normalized(other)];
  if (first.sign !== second.sign) return first.sign - second.sign;
  const difference = first.power - second.power;
  if (difference !== 0n) return (difference < 0n ? -1 : 1) * first.sign;
  return order(first.digits, second.digits) * first.sign;
}

/** The number is sign * 0.digits * 10 ** power; its digits begin and end with none that is 0. */
function normalized(number: string): { sign: number; digits: string; power: bigint } {
  const [mantissa = '', exponent = '0'] = number.replace(/^-/, '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const written = whole + fraction;
  let end = written.length;
  while (written[end - 1] === '0') end -= 1;
  const digits = written.slice(0, end).replace(/^0+/, '');
  const power = BigInt(whole.length - end + digits.length) + BigInt(exponent.replace('+', ''));
  if (digits === '') return { sign: 0, digits, power: 0n };
  return { sign: number.startsWith('-') ? -1 : 1, digits, power };
}
