import type { Dictionary } from './dictionary.ts';
import { decide, type Expression, isAlways, isNever, termsOf } from './expression.ts';

/** Disjoint pairs of a kind and an actor, as parallel lists; 0 stands for any. */
export interface Keys {
  readonly kinds: readonly number[];
  readonly actors: readonly number[];
}

/** A stretch of time [since, before) in which one set of keys is asked for; `before` null: without an end. */
export interface Interval extends Keys {
  readonly since: number;
  readonly before: number | null;
}

/**
 * What of a query the tallies can answer, newest first: the entries that satisfy it whatever its terms on document
 * and related ids say. There is no negation in the language, so these entries are a part of the answer, and the
 * rest of the answer satisfies at least one of those terms.
 */
export function planTallies(expression: Expression, dictionary: Dictionary, from: number): Interval[] {
  const intervals: Interval[] = [];
  const keysOf = memoized((open: Expression) => keysOfExpression(open, dictionary));
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
    const keys = keysOf(open);
    const last = intervals.at(-1);
    if (last !== undefined && last.since === before && last.kinds === keys.kinds) {
      intervals[intervals.length - 1] = { ...keys, since, before: last.before };
    } else if (keys.kinds.length > 0) {
      intervals.push({ ...keys, since, before });
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

const noKeys: Keys = { kinds: [], actors: [] };
const everything: Keys = { kinds: [0], actors: [0] };

/** The keys of an expression that has terms on kinds and actors alone. */
function keysOfExpression(expression: Expression, dictionary: Dictionary): Keys {
  if (isAlways(expression)) return everything;
  if (isNever(expression)) return noKeys;
  const groups = groupKinds(expression, dictionary);
  const kinds: number[] = [];
  const actors: number[] = [];
  for (const { open, ids } of groups) {
    if (isNever(open)) continue;
    const members = isAlways(open) ? undefined : actorsOf(open, dictionary);
    const those = members === undefined || members.length === dictionary.actors.length ? [0] : members;
    const these = groups.length === 1 ? [0] : ids;
    for (const actor of those) {
      for (const kind of these) {
        kinds.push(kind);
        actors.push(actor);
      }
    }
  }
  return { kinds, actors };
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
  const members = combine(expression, dictionary.actors.length);
  return dictionary.actors.filter((_actor, index) => members[index] === 1).map((actor) => actor.id);
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
