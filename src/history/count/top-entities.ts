import { statementsOf } from '../../postgres/statements.ts';
import type { QueryParts } from '../page/query-parts.ts';
import type { QuerySnapshot } from '../page/query-snapshot.ts';
import type { CountingCosts } from './counting-costs.ts';
import type { FacetValue } from './summary-store.ts';

/** Entries of some actors and some kinds (null: of all) in [since, before). */
interface RangeOfSelection {
  readonly actors: readonly number[] | null;
  readonly kinds: readonly number[] | null;
  readonly since: number;
  /** null: the range has no end. */
  readonly before: number | null;
}

/** The range that a query consists of. Undefined if it has several ranges or selections, or terms on documents. */
export function rangeOfSelection({ intervals, search }: QueryParts): RangeOfSelection | undefined {
  const [interval, ...more] = intervals;
  if (interval === undefined || more.length > 0 || search !== undefined) return undefined;
  const [selection, ...others] = interval.selections;
  if (selection === undefined || others.length > 0) return undefined;
  return { ...selection, since: interval.since, before: interval.before };
}

/** What readTopEntities costs if it counts twice as many entity types as the answer has room for. In nanoseconds. */
export function costOfTopEntities(
  { dictionary }: QuerySnapshot,
  { actors, kinds }: RangeOfSelection,
  size: number,
  costs: CountingCosts,
): number {
  const { ids, names } = namedKinds(dictionary, kinds);
  const kindsOfEntity = ids.length / Math.max(1, new Set(names).size);
  const counted = Math.min(ids.length, 2 * size * kindsOfEntity);
  const ofActors = actors === null ? counted * costs.key : actors.length * (1 + counted) * costs.tally;
  return ids.length * costs.candidate + ofActors;
}

/** The `size` entity types with most entries, ties by code point. Exact, without a count of all the others. */
export async function readTopEntities(
  { transaction, tenant, dictionary }: QuerySnapshot,
  { actors, kinds, since, before }: RangeOfSelection,
  size: number,
): Promise<FacetValue[]> {
  const { ids, names } = namedKinds(dictionary, kinds);
  const { rows } = await statementsOf(transaction).query<FacetValue>({
    text: 'select name as value, entries as count from change_top_entities($1, $2, $3, $4, $5, $6, $7)',
    values: [tenant, actors ?? [0], ids, names, since, before, size],
  });
  return rows;
}

/** Kinds by their numbers, and for each the first kind of its entity type, which stands for it. */
function namedKinds(
  { kinds, kindOf }: QuerySnapshot['dictionary'],
  selected: readonly number[] | null,
): { ids: readonly number[]; names: readonly number[] } {
  const firstOf = new Map<string, number>();
  const ids = selected ?? kinds.map(({ id }) => id);
  const names = ids.map((id) => {
    const entity = kindOf.get(id)?.entity ?? '';
    const first = firstOf.get(entity) ?? id;
    firstOf.set(entity, first);
    return first;
  });
  return { ids, names };
}
