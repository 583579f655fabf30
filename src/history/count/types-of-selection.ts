import { sql } from 'kysely';
import type { Selection } from '../ask/tally-plan.ts';
import type { Dictionary } from '../names/dictionary.ts';
import type { QueryParts } from '../page/query-parts.ts';
import type { QuerySnapshot } from '../page/query-snapshot.ts';

/** The types of entries, each with the number that stands for its kinds in the tallies (change_type_number). */
const typeNumbers = { create: -1, update: -2, delete: -3 } as const;

export type EntryType = keyof typeof typeNumbers;

export const entryTypes = Object.keys(typeNumbers) as EntryType[];

/**
 * The numbers of the types that a selection consists of. Undefined if it has only some kinds of a type.
 *
 * @example
 * typesOfSelection({ actors: null, kinds: null }, dictionary); // [-1, -2, -3]
 */
export function typesOfSelection({ kinds }: Selection, dictionary: Dictionary): number[] | undefined {
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

/** The numbers of the types of a selection that tallies count by type. Undefined for any other selection. */
export type TalliedTypes = (selection: Selection) => number[] | undefined;

/**
 * Finds out which selections of a query tallies count by type. Of some actors they do in each cell with many kinds, beside
 * the tallies by kind. Of the tenant they do, in place of the kinds, when the background has counted the entries that an
 * earlier version folded.
 */
export async function talliedTypes(
  { transaction, tenant, dictionary }: QuerySnapshot,
  { intervals }: Pick<QueryParts, 'intervals'>,
): Promise<TalliedTypes> {
  const ofTenant = intervals.flatMap(({ selections }) => selections.filter(({ actors }) => actors === null));
  const canBe = ofTenant.some((selection) => typesOfSelection(selection, dictionary) !== undefined);
  const backlog = canBe
    ? (await sql`select from change_type_backlog where tenant = ${tenant}`.execute(transaction)).rows
    : [];
  return (selection) =>
    selection.actors === null && backlog.length > 0 ? undefined : typesOfSelection(selection, dictionary);
}
