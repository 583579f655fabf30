import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import type { Dictionary } from './dictionary.ts';

export type NameField = 'entity' | 'actor' | 'related.entity';

export interface NameSearch {
  readonly field: NameField;
  readonly prefix: string;
  readonly size: number;
}

/** A name, and the ids of the actors or kinds that have it. */
interface NamedIds {
  readonly name: string;
  readonly ids: number[];
}

/** Returns those of the ids that still have an entry. */
export type FindVisible = (ids: readonly number[]) => Promise<ReadonlySet<number>>;

/** Names looked up in the first statement, and at most in one. */
const fewNames = 200;
const manyNames = 10_000;

/**
 * The first names that begin with a prefix, in the order of code points, ignoring case (Unicode's simple folding). A
 * name counts only if an entry that the tenant still keeps has it.
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

/** The ids of the actors of whom the id or a name begins with a prefix, ignoring case as `searchNames` does. */
export async function idsBeginning({ actors }: Pick<Dictionary, 'actors'>, prefix: string): Promise<string[]> {
  const slice = new TimeSlice();
  const begins = new RegExp(`^${RegExp.escape(prefix)}`, 'iu');
  const ids = new Set<string>();
  for (const [index, { actorId, name }] of actors.entries()) {
    if (index % 256 === 0 && slice.isDue) await slice.rest();
    if (actorId !== undefined && (begins.test(actorId) || begins.test(name))) ids.add(actorId);
  }
  return [...ids];
}

/** The first `max` names after a name, in the order of code points. */
async function firstNames(
  { actors, kinds }: Pick<Dictionary, 'actors' | 'kinds'>,
  { field, begins, after, max }: { field: NameField; begins: RegExp; after: string | undefined; max: number },
  slice: TimeSlice,
): Promise<NamedIds[]> {
  const first: NamedIds[] = [];
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
function placeOf(name: string, names: readonly NamedIds[]): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareCodePoints(names[middle]?.name ?? '', name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Compares texts by code points, for `sort`. JavaScript's own order differs above U+FFFF. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [first, second] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (first !== second) return rankOf(first) - rankOf(second);
  }
  return a.length - b.length;
}

/** Surrogates are parts of code points above all others. */
function rankOf(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
