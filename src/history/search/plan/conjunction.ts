import { TimeSlice } from '../../../core/concurrency/time-slice.ts';
import type { Dictionary } from '../names/dictionary.ts';
import { type Expression, isGroup, isOpen, type OpenTerm, type Term } from './expression.ts';
import { possibleKinds } from './kind-classes.ts';
import { actorsOf } from './tally-plan.ts';

/** An AND of terms, exactly one of which tallies cannot answer. */
export interface Conjunction {
  readonly since: number;
  readonly before: number | null;
  /** null means any. */
  readonly kinds: readonly number[] | null;
  readonly actors: readonly number[] | null;
  readonly open: OpenTerm;
}

/** Converts the expression to a conjunction if it is one. `from` is the beginning of the window. */
export async function asConjunction(
  expression: Expression,
  dictionary: Dictionary,
  from: number,
  slice = new TimeSlice(),
): Promise<Conjunction | undefined> {
  const terms = flat(expression);
  if (terms === undefined) return undefined;
  const times = terms.filter((term) => term.kind === 'time');
  const actors = terms.filter((term) => term.kind === 'actors');
  const [open, ...others] = terms.filter(isOpen);
  if (open === undefined || others.length > 0) return undefined;
  const isImplied = (term: Term) => open.kind === 'related' && term === open.implies;
  const before = Math.min(...times.map((term) => term.to ?? Number.POSITIVE_INFINITY));
  return {
    since: Math.max(from, ...times.map((term) => term.from ?? 0)),
    before: before === Number.POSITIVE_INFINITY ? null : before,
    kinds: await possibleKinds({ kind: 'and', operands: terms.filter((term) => !isImplied(term)) }, dictionary, slice),
    actors:
      actors.length === 0
        ? null
        : await actorsOf({ kind: 'and', operands: actors }, { dictionary, slice, classes: [], steps: 0 }),
    open,
  };
}

function flat(expression: Expression): Term[] | undefined {
  if (!isGroup(expression)) return [expression];
  if (expression.kind === 'or' && expression.operands.length !== 1) return undefined;
  const parts = expression.operands.map(flat);
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}
