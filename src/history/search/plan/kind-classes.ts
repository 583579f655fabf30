import { TimeSlice } from '../../../core/concurrency/time-slice.ts';
import type { Dictionary } from '../names/dictionary.ts';
import { decide, type Expression, isAlways, type Members, termsOf } from './expression.ts';

/** Kinds that satisfy the same terms of a query; `first` is the place of one of them. */
export interface KindClass {
  readonly first: number;
  readonly ids: number[];
}

export async function classesOfKinds(
  expression: Expression,
  { kinds }: Dictionary,
  slice: TimeSlice,
): Promise<KindClass[]> {
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
function signatureOf(terms: readonly Members<'kinds'>[], index: number): number | string {
  if (terms.length > 50) return terms.map((term) => term.members[index]).join('');
  let bits = 1;
  for (const { members } of terms) bits = 2 * bits + (members[index] ?? 0);
  return bits;
}

/** The kinds whose entries may satisfy the query; null means all kinds. */
export async function possibleKinds(
  expression: Expression,
  dictionary: Dictionary,
  slice = new TimeSlice(),
): Promise<number[] | null> {
  const possible: number[] = [];
  for (const { first, ids } of await classesOfKinds(expression, dictionary, slice)) {
    if (slice.isDue) await slice.rest();
    const open = decide(expression, (term) => (term.kind === 'kinds' ? term.members[first] === 1 : true));
    if (isAlways(open)) possible.push(...ids);
  }
  return possible.length === dictionary.kinds.length ? null : possible.sort((one, other) => one - other);
}
