import type { TimeSlice } from '../../core/concurrency/time-slice.ts';
import type { Actor, Dictionary } from './dictionary.ts';

/** The further numbers of actors that have several, and for each the number that stands for the actor, at the same place. */
export interface Twins {
  readonly twins: readonly number[];
  readonly firsts: readonly number[];
}

const known = new WeakMap<readonly Actor[], Twins>();

/** Two recorders that meet a new actor at once give it two numbers. Remembered for as long as the dictionary is. */
export async function twinsOf({ actors }: Dictionary, slice: TimeSlice): Promise<Twins> {
  const remembered = known.get(actors);
  if (remembered !== undefined) return remembered;
  const firstOf = new Map<string, number>();
  const found = { twins: [] as number[], firsts: [] as number[] };
  for (const [index, { id, name }] of actors.entries()) {
    if (index % 256 === 0 && slice.isDue) await slice.rest();
    const first = firstOf.get(name);
    if (first === undefined) firstOf.set(name, id);
    else {
      found.twins.push(id);
      found.firsts.push(first);
    }
  }
  known.set(actors, found);
  return found;
}
