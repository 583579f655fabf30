import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import type { Dictionary } from '../names/dictionary.ts';
import {
  decide,
  type Expression,
  idsOf,
  isAlways,
  isGroup,
  isNever,
  isOpen,
  type NameTerm,
  termsOf,
} from './expression.ts';

/** The entries of some actors and of some kinds, by their ids; null means any. */
export interface Selection {
  readonly actors: readonly number[] | null;
  readonly kinds: readonly number[] | null;
}

/** A range of time [since, before) and its selections, no two of which share an entry. null: the range has no end. */
export interface Interval {
  readonly since: number;
  readonly before: number | null;
  readonly selections: readonly Selection[];
}

/** How much of the tallies a query has to read. */
export interface TallyPlan {
  readonly intervals: readonly Interval[];
  /** Tallies in all intervals, including the cells at both ends of each interval. Each takes about 16 microseconds. */
  readonly keys: number;
}

/** Whether reading the entries may be cheaper than a plan. */
export function isLarge({ keys, intervals }: TallyPlan): boolean {
  return keys > 4_000 || intervals.length > 32;
}

/** A plan with more keys or more steps is dropped: reading the entries is cheaper. */
const maxKeys = 400_000;
const maxSteps = 300_000_000;

/**
 * The part of a query that tallies can answer, newest first: the entries that satisfy the query whatever its terms on
 * documents and paths match. The language has no negation, so these entries are a part of the answer; the others
 * satisfy at least one of those terms. Undefined if tallies take too much work, for example where many arms each have a
 * time and a pattern of their own.
 */
export async function planTallies(
  expression: Expression,
  dictionary: Dictionary,
  from: number,
  slice = new TimeSlice(),
): Promise<TallyPlan | undefined> {
  if (isAlways(expression)) return { intervals: [{ since: from, before: null, selections: everything }], keys: 1 };
  const intervals: Interval[] = [];
  const classes = await classesOfKinds(expression, dictionary, slice);
  const planning: Planning = { dictionary, slice, classes, steps: 0 };
  const known = new Map<string, readonly Selection[]>();
  const nameOf = termNames();
  const terms = termsOf(expression).length;
  let keys = 0;
  for (const { since, before } of rangesOf(expression, from)) {
    if (slice.isDue) await slice.rest();
    planning.steps += terms;
    const left = withinRange(expression, { since, before });
    const name = nameOf(left);
    const selections = known.get(name) ?? (await selectionsOf(left, planning));
    known.set(name, selections);
    const last = intervals.at(-1);
    if (last !== undefined && last.since === before && last.selections === selections) {
      intervals[intervals.length - 1] = { since, before: last.before, selections };
    } else if (selections.length > 0) {
      intervals.push({ since, before, selections });
      keys += selections.reduce((sum, selection) => sum + keysOf(selection), 0);
    }
    if (keys > maxKeys || planning.steps > maxSteps) return undefined;
  }
  return { intervals, keys };
}

/** A plan of these intervals. `talliesOf`: how many tallies of a selection are read at a moment. */
export function planOf(
  intervals: readonly Interval[],
  talliesOf: (selection: Selection) => number = keysOf,
): TallyPlan {
  const selections = intervals.flatMap((interval) => interval.selections);
  return { intervals, keys: selections.reduce((sum, selection) => sum + talliesOf(selection), 0) };
}

/** How many tallies count the entries of a selection at one moment, by actor and kind. */
function keysOf({ actors, kinds }: Selection): number {
  return (actors?.length ?? 1) * (actors === null ? (kinds?.length ?? 1) : 1 + (kinds?.length ?? 0));
}

type TimeInterval = Omit<Interval, 'selections'>;

/** The time from `from` on, split at each begin and end of a range in the query, newest first. */
function rangesOf(expression: Expression, from: number): TimeInterval[] {
  const cuts = new Set<number>([from]);
  for (const term of termsOf(expression)) {
    if (term.kind !== 'time') continue;
    for (const cut of [term.from, term.to]) if (cut !== undefined && cut > from) cuts.add(cut);
  }
  const sorted = [...cuts].sort((a, b) => b - a);
  return sorted.map((since, index) => ({ since, before: sorted[index - 1] ?? null }));
}

/** What is left of an expression in a range in which each term on time holds throughout or nowhere. No term is open. */
function withinRange(expression: Expression, { since, before }: TimeInterval): Expression {
  return decide(expression, (term) => {
    if (term.kind !== 'time') return isOpen(term) ? false : undefined;
    const hasBegun = term.from === undefined || term.from <= since;
    return hasBegun && (term.to === undefined || (before !== null && before <= term.to));
  });
}

const everything: readonly Selection[] = [{ actors: null, kinds: null }];

interface Planning {
  readonly dictionary: Dictionary;
  readonly slice: TimeSlice;
  readonly classes: readonly KindClass[];
  steps: number;
}

async function selectionsOf(expression: Expression, planning: Planning): Promise<readonly Selection[]> {
  const { dictionary } = planning;
  if (isAlways(expression)) return everything;
  if (isNever(expression)) return [];
  const groups = await groupKinds(expression, planning);
  const byAnyActor: number[] = [];
  const selections: Selection[] = [];
  let keys = 0;
  for (const { open, ids } of groups) {
    if (isNever(open)) continue;
    const actors = isAlways(open) ? undefined : await actorsOf(open, planning);
    if (actors === undefined || actors.length === dictionary.actors.length) byAnyActor.push(...ids);
    else if (actors.length > 0) {
      const selection = { actors, kinds: groups.length === 1 ? null : ids };
      selections.push(selection);
      keys += keysOf(selection);
    }
    // The caller gives up as well.
    if (keys > maxKeys) planning.steps = Number.POSITIVE_INFINITY;
    if (planning.steps > maxSteps) return [];
  }
  if (byAnyActor.length === dictionary.kinds.length) return everything;
  return byAnyActor.length === 0 ? selections : [{ actors: null, kinds: byAnyActor }, ...selections];
}

/** Groups the kinds for which the same condition on the actor is left. */
async function groupKinds(expression: Expression, planning: Planning): Promise<{ open: Expression; ids: number[] }[]> {
  const groups = new Map<string, { open: Expression; ids: number[] }>();
  const nameOf = termNames();
  const terms = termsOf(expression).length;
  for (const { first, ids } of planning.classes) {
    if (planning.slice.isDue) await planning.slice.rest();
    planning.steps += terms;
    const open = decide(expression, (term) => (term.kind === 'kinds' ? term.members[first] === 1 : undefined));
    groups.getOrInsertComputed(nameOf(open), () => ({ open, ids: [] })).ids.push(...ids);
  }
  for (const { ids } of groups.values()) ids.sort((a, b) => a - b);
  return [...groups.values()];
}

export async function actorsOf(expression: Expression, planning: Planning): Promise<number[]> {
  return idsOf(planning.dictionary.actors, await combine(expression, planning));
}

async function combine(expression: Expression, planning: Planning): Promise<Uint8Array> {
  if (expression.kind === 'actors') return expression.members;
  if (!isGroup(expression)) throw new Error(`a term on ${expression.kind} is open`);
  const { length } = planning.dictionary.actors;
  const all = expression.kind === 'and';
  const combined = new Uint8Array(length).fill(all ? 1 : 0);
  for (const operand of expression.operands) {
    if (planning.slice.isDue) await planning.slice.rest();
    planning.steps += length;
    const members = await combine(operand, planning);
    for (let index = 0; index < length; index++) {
      const member = members[index] ?? 0;
      if (all ? member === 0 : member === 1) combined[index] = member;
    }
  }
  return combined;
}

/** A text that is equal for two expressions of the same structure with the same terms. */
function termNames(): (expression: Expression) => string {
  const names = new Map<Expression, number>();
  const nameOf = (expression: Expression): string =>
    isGroup(expression)
      ? `${expression.kind}(${expression.operands.map(nameOf).join(' ')})`
      : String(names.getOrInsert(expression, names.size));
  return nameOf;
}

/** Kinds that satisfy the same terms of a query; `first` is the index of one of them. */
interface KindClass {
  readonly first: number;
  readonly ids: number[];
}

async function classesOfKinds(expression: Expression, { kinds }: Dictionary, slice: TimeSlice): Promise<KindClass[]> {
  const terms = termsOf(expression).filter((term) => term.kind === 'kinds');
  const classes = new Map<number | string, KindClass>();
  for (const [index, kind] of kinds.entries()) {
    if (index % 256 === 0 && slice.isDue) await slice.rest();
    const signature = signatureOf(terms, index);
    classes.getOrInsertComputed(signature, () => ({ first: index, ids: [] })).ids.push(kind.id);
  }
  return [...classes.values()];
}

/** The set of terms that a kind satisfies. It is a number, which is quick to make and to find, while that is exact. */
function signatureOf(terms: readonly NameTerm<'kinds'>[], index: number): number | string {
  if (terms.length > 50) return terms.map((term) => term.members[index]).join('');
  let bits = 1;
  for (const { members } of terms) bits = 2 * bits + (members[index] ?? 0);
  return bits;
}

/** The kinds whose entries may satisfy the query; null means all kinds. */
export async function possibleKinds(
  expression: Expression,
  dictionary: Dictionary,
  slice: TimeSlice,
): Promise<number[] | null> {
  const possible: number[] = [];
  for (const { first, ids } of await classesOfKinds(expression, dictionary, slice)) {
    if (slice.isDue) await slice.rest();
    const open = decide(expression, (term) => (term.kind === 'kinds' ? term.members[first] === 1 : true));
    if (isAlways(open)) possible.push(...ids);
  }
  return possible.length === dictionary.kinds.length ? null : possible.sort((a, b) => a - b);
}
