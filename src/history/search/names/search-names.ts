import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import type { Dictionary } from './dictionary.ts';

export type NameField = 'entity' | 'actor' | 'related.entity';

export interface NameSearch {
  readonly field: NameField;
  readonly prefix: string;
  readonly size: number;
}

/** A name, and the numbers of the actors, or of the kinds, that have it. */
interface NumberedName {
  readonly name: string;
  readonly ids: number[];
}

/** Returns those of the numbers that still have an entry. */
export type FindVisible = (ids: readonly number[]) => Promise<ReadonlySet<number>>;

/** How many names are looked up at once at first, and at most. */
const fewNames = 200;
const manyNames = 10_000;

/**
 * The first names that begin with a prefix, in the order of code points. Case does not count (Unicode's simple
 * folding). A name counts only if an entry that the tenant still has bears it.
 */
export async function searchNames(
  dictionary: Pick<Dictionary, 'actors' | 'kinds'>,
  { field, prefix, size }: NameSearch,
  findVisible: FindVisible,
): Promise<string[]> {
  const slice = new TimeSlice();
  // The flags `iu` fold as Unicode's simple folding does.
  const begins = new RegExp(`^${RegExp.escape(prefix)}`, 'iu');
  const found: string[] = [];
  let after: string | undefined;
  for (let max = fewNames; found.length < size; max = Math.min(manyNames, 4 * max)) {
    const names = await firstNames(dictionary, { field, begins, after, max }, slice);
    const visible = await findVisible(names.flatMap(({ ids }) => ids));
    found.push(...names.filter(({ ids }) => ids.some((id) => visible.has(id))).map(({ name }) => name));
    after = names.at(-1)?.name;
    if (names.length < max) break;
  }
  return found.slice(0, size);
}

/** The first `max` names after a name, in the order of code points. */
async function firstNames(
  { actors, kinds }: Pick<Dictionary, 'actors' | 'kinds'>,
  { field, begins, after, max }: { field: NameField; begins: RegExp; after: string | undefined; max: number },
  slice: TimeSlice,
): Promise<NumberedName[]> {
  const first: NumberedName[] = [];
  const add = (name: string, id: number) => {
    if (after !== undefined && compareCodePoints(name, after) <= 0) return;
    const last = first.at(-1);
    if (first.length === max && last !== undefined && compareCodePoints(name, last.name) > 0) return;
    if (!begins.test(name)) return;
    const place = placeOf(name, first);
    if (first[place]?.name === name) {
      first[place].ids.push(id);
      return;
    }
    first.splice(place, 0, { name, ids: [id] });
    if (first.length > max) first.pop();
  };
  const numbered = field === 'actor' ? actors : kinds;
  for (let index = 0; index < numbered.length; index++) {
    if (index % 256 === 0 && slice.isDue) await slice.rest();
    const actor = actors[index];
    const kind = kinds[index];
    if (field === 'actor' && actor !== undefined) add(actor.name, actor.id);
    if (field === 'entity' && kind !== undefined) add(kind.entity, kind.id);
    if (field === 'related.entity' && kind !== undefined) for (const name of kind.relatedEntities) add(name, kind.id);
  }
  return first;
}

/** Where a name is or belongs in a list in the order of code points. */
function placeOf(name: string, names: readonly NumberedName[]): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareCodePoints(names[middle]?.name ?? '', name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The order of texts by their code points, which that of JavaScript is not above U+FFFF: for `sort`. */
export function compareCodePoints(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index++) {
    const [first, second] = [one.charCodeAt(index), other.charCodeAt(index)];
    if (first !== second) return rankOf(first) - rankOf(second);
  }
  return one.length - other.length;
}

/** Surrogates stand for code points above all others. */
function rankOf(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
