import type { Dictionary } from './dictionary.ts';
import {
  type DocumentTerm,
  decide,
  type Expression,
  idsOf,
  isAlways,
  isGroup,
  isNever,
  type RelatedTerm,
  type Term,
  termsOf,
} from './expression.ts';

/** The entries of some actors and of some kinds, by their numbers; null: any. */
export interface Selection {
  readonly actors: readonly number[] | null;
  readonly kinds: readonly number[] | null;
}

/**
 * A stretch of time [since, before) in which some selections are asked for, of which no two share an entry; `before`
 * null: without an end.
 */
export interface Interval {
  readonly since: number;
  readonly before: number | null;
  readonly selections: readonly Selection[];
}

/**
 * What of a query the tallies can answer, newest first: the entries that satisfy it whatever its terms on document
 * and related ids say. There is no negation in the language, so these entries are a part of the answer, and the
 * rest of the answer satisfies at least one of those terms.
 */
export function planTallies(expression: Expression, dictionary: Dictionary, from: number): Interval[] {
  const intervals: Interval[] = [];
  const selectionsOf = memoized((open: Expression) => selectionsOfExpression(open, dictionary));
  for (const { since, before } of stretches(expression, from)) {
    const open = decide(expression, (term) => {
      if (term.kind === 'time') {
        return (
          (term.from === undefined || term.from <= since) &&
          (term.to === undefined || (before !== null && before <= term.to))
        );
      }
      return term.kind === 'document' || term.kind === 'related' ? false : undefined;
    });
    const selections = selectionsOf(open);
    const last = intervals.at(-1);
    if (last !== undefined && last.since === before && last.selections === selections) {
      intervals[intervals.length - 1] = { since, before: last.before, selections };
    } else if (selections.length > 0) {
      intervals.push({ since, before, selections });
    }
  }
  return intervals;
}

/** The kinds whose entries may satisfy the query at all; null where all of them may. */
export function possibleKinds(expression: Expression, dictionary: Dictionary): number[] | null {
  const possible = dictionary.kinds.filter((_kind, index) => {
    const open = decide(expression, (term) => (term.kind === 'kinds' ? term.members[index] === 1 : true));
    return isAlways(open);
  });
  return possible.length === dictionary.kinds.length ? null : possible.map((kind) => kind.id);
}

/** An AND of terms of which one alone is on documents. */
export interface Conjunction {
  readonly since: number;
  readonly before: number | null;
  /** null: any. */
  readonly kinds: readonly number[] | null;
  readonly actors: readonly number[] | null;
  readonly onDocuments: DocumentTerm | RelatedTerm;
}

/** The expression as a conjunction, where it is one. `from` is where the window begins. */
export function asConjunction(expression: Expression, dictionary: Dictionary, from: number): Conjunction | undefined {
  const terms = flat(expression);
  if (terms === undefined) return undefined;
  const times = terms.filter((term) => term.kind === 'time');
  const actors = terms.filter((term) => term.kind === 'actors');
  const [onDocuments, ...others] = terms.filter((term) => term.kind === 'document' || term.kind === 'related');
  if (onDocuments === undefined || others.length > 0) return undefined;
  const before = Math.min(...times.map((term) => term.to ?? Number.POSITIVE_INFINITY));
  return {
    since: Math.max(from, ...times.map((term) => term.from ?? 0)),
    before: before === Number.POSITIVE_INFINITY ? null : before,
    kinds: possibleKinds(expression, dictionary),
    actors: actors.length === 0 ? null : actorsOf({ kind: 'and', operands: actors }, dictionary),
    onDocuments,
  };
}

function flat(expression: Expression): Term[] | undefined {
  if (!isGroup(expression)) return [expression];
  if (expression.kind === 'or' && expression.operands.length !== 1) return undefined;
  const parts = expression.operands.map(flat);
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}

/** The time from `from` on, cut wherever a range of the query begins or ends, newest first. */
function stretches(expression: Expression, from: number): { since: number; before: number | null }[] {
  const cuts = new Set<number>([from]);
  for (const term of termsOf(expression)) {
    if (term.kind !== 'time') continue;
    for (const cut of [term.from, term.to]) if (cut !== undefined && cut > from) cuts.add(cut);
  }
  const sorted = [...cuts].sort((one, other) => other - one);
  return sorted.map((since, index) => ({ since, before: sorted[index - 1] ?? null }));
}

const everything: readonly Selection[] = [{ actors: null, kinds: null }];

/** What an expression selects that has terms on kinds and actors alone. */
function selectionsOfExpression(expression: Expression, dictionary: Dictionary): readonly Selection[] {
  if (isAlways(expression)) return everything;
  if (isNever(expression)) return [];
  const groups = groupKinds(expression, dictionary);
  const byWhomever: number[] = [];
  const selections: Selection[] = [];
  for (const { open, ids } of groups) {
    if (isNever(open)) continue;
    const actors = isAlways(open) ? undefined : actorsOf(open, dictionary);
    if (actors === undefined || actors.length === dictionary.actors.length) byWhomever.push(...ids);
    else if (actors.length > 0) selections.push({ actors, kinds: groups.length === 1 ? null : ids });
  }
  if (byWhomever.length === dictionary.kinds.length) return everything;
  return byWhomever.length === 0 ? selections : [{ actors: null, kinds: byWhomever }, ...selections];
}

/** Kinds for which the same is left to be said of the actor. */
function groupKinds(expression: Expression, dictionary: Dictionary): { open: Expression; ids: number[] }[] {
  const groups = new Map<string, { open: Expression; ids: number[] }>();
  const nameOf = termNames();
  dictionary.kinds.forEach((kind, index) => {
    const open = decide(expression, (term) => (term.kind === 'kinds' ? term.members[index] === 1 : undefined));
    const name = nameOf(open);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { open, ids: [kind.id] });
    else group.ids.push(kind.id);
  });
  return [...groups.values()];
}

function actorsOf(expression: Expression, dictionary: Dictionary): number[] {
  return idsOf(dictionary.actors, combine(expression, dictionary.actors.length));
}

function combine(expression: Expression, length: number): Uint8Array {
  if (expression.kind === 'actors') return expression.members;
  if (expression.kind !== 'and' && expression.kind !== 'or') throw new Error(`a term on ${expression.kind} is open`);
  const all = expression.kind === 'and';
  const combined = new Uint8Array(length).fill(all ? 1 : 0);
  for (const operand of expression.operands) {
    const members = combine(operand, length);
    for (let index = 0; index < length; index++) {
      const one = members[index] ?? 0;
      if (all ? one === 0 : one === 1) combined[index] = one;
    }
  }
  return combined;
}

/** A text for an expression that is the same for the same structure of the same terms. */
function termNames(): (expression: Expression) => string {
  const names = new Map<Expression, number>();
  const nameOf = (expression: Expression): string => {
    if (expression.kind === 'and' || expression.kind === 'or') {
      return `${expression.kind}(${expression.operands.map(nameOf).join(' ')})`;
    }
    const name = names.get(expression) ?? names.size;
    names.set(expression, name);
    return String(name);
  };
  return nameOf;
}

function memoized<Value>(compute: (expression: Expression) => Value): (expression: Expression) => Value {
  const nameOf = termNames();
  const values = new Map<string, Value>();
  return (expression) => {
    const name = nameOf(expression);
    const known = values.get(name);
    if (known !== undefined) return known;
    const value = compute(expression);
    values.set(name, value);
    return value;
  };
}
