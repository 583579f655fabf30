import { sql } from 'kysely';
import type { Dictionary } from '../names/dictionary.ts';
import type { Selection } from '../plan/tally-plan.ts';
import type { QueryParts } from '../read/query-parts.ts';
import type { QuerySnapshot } from '../read/query-snapshot.ts';

/** The types of entries, each with the number that stands for its kinds in the tallies (change_type_number). */
const typeNumbers = { create: -1, update: -2, delete: -3 } as const;

export type EntryType = keyof typeof typeNumbers;

export const entryTypes = Object.keys(typeNumbers) as EntryType[];

/**
 * The numbers of the types that a selection consists of. Undefined if it has not all kinds of a type, or only some actors:
 * tallies by type do not count such a selection.
 *
 * @example
 * typesOfSelection({ actors: null, kinds: null }, dictionary); // [-1, -2, -3]
 */
export function typesOfSelection({ actors, kinds }: Selection, dictionary: Dictionary): number[] | undefined {
  if (actors !== null) return undefined;
  const wanted = kinds === null ? undefined : new Set(kinds);
  const types: number[] = [];
  for (const type of entryTypes) {
    const all = dictionary.kinds.filter((kind) => kind.type === type);
    const found = wanted === undefined ? all.length : all.filter(({ id }) => wanted.has(id)).length;
    if (wanted === undefined || (found > 0 && found === all.length)) types.push(typeNumbers[type]);
    else if (found > 0) return undefined;
  }
  return types;
}

/**
 * Whether the tallies of a tenant count all folded entries by type, where a query has a selection that could use that. The
 * entries of an earlier version are counted by type in the background.
 */
export async function hasTalliesByType(
  { transaction, tenant, dictionary }: QuerySnapshot,
  { intervals }: Pick<QueryParts, 'intervals'>,
): Promise<boolean> {
  const selections = intervals.flatMap((interval) => interval.selections);
  if (!selections.some((selection) => typesOfSelection(selection, dictionary) !== undefined)) return false;
  const { rows } = await sql`select from change_type_backlog where tenant = ${tenant}`.execute(transaction);
  return rows.length === 0;
}
