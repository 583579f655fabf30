import { type RawBuilder, sql } from 'kysely';
import type { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { Dictionary } from './names/dictionary.ts';
import { decide, type Expression, isNever, isOpen, type OpenTerm, type Term, termsOf } from './plan/expression.ts';
import { possibleKinds } from './plan/tally-plan.ts';
import {
  documentSatisfies,
  type EntryConditions,
  isOnTexts,
  itemSatisfies,
  namedDocuments,
  namesDocuments,
} from './predicate.ts';
import type { Search } from './search-store.ts';

/** The search for the entries that satisfy the query because of its terms on documents, and not without them. */
export async function searchOf(
  expression: Expression,
  conditions: EntryConditions,
  {
    dictionary,
    slice,
    ...of
  }: Pick<Search, 'tenant' | 'since' | 'underestimated'> & { dictionary: Dictionary; slice: TimeSlice },
): Promise<Search> {
  const { tenant, since } = of;
  const tallied = decide(expression, (term) => (isOpen(term) ? false : undefined));
  const kinds = await possibleKinds(expression, dictionary, slice);
  const ofKinds = kinds === null ? sql`true` : sql`e.kind = any (${kinds}::bigint[])`;
  const conditionOf = (part: Expression) =>
    isNever(tallied)
      ? sql<boolean>`${ofKinds} and ${conditions.satisfies(part)}`
      : sql<boolean>`${ofKinds} and ${conditions.satisfies(part)} and not ${conditions.satisfies(tallied)}`;
  const terms = coverOf(expression) ?? termsOf(expression).filter(isOpen);
  const [only, ...others] = terms;
  // An index finds a single term on documents in an AND by its own condition.
  const isIndexed = others.length === 0 && only?.kind === 'document' && isNever(tallied);
  if (isIndexed || only === undefined || !terms.every(namesDocuments)) {
    return { ...of, byIds: termsOf(expression).some(isOnTexts), condition: conditionOf(expression) };
  }
  const places = sql.join(
    terms.map((term) => placesOf(term, tenant, since)),
    sql` union `,
  );
  // All places of this one term satisfy it, so Annals does not check the term again.
  const holds = (term: Term) => term === only || (only.kind === 'related' && term === only.implies);
  const open = others.length > 0 ? expression : decide(expression, (term) => (holds(term) ? true : undefined));
  return { ...of, places, condition: conditionOf(open) };
}

/** The search for all entries that satisfy the query. Where none does without its terms on documents, their indexes find them. */
export async function searchOfAll(...[expression, conditions, of]: Parameters<typeof searchOf>): Promise<Search> {
  if (isNever(decide(expression, (term) => (isOpen(term) ? false : undefined)))) {
    return await searchOf(expression, conditions, of);
  }
  return { tenant: of.tenant, since: of.since, condition: conditions.satisfies(expression) };
}

function placesOf(term: OpenTerm, tenant: string, since: number): RawBuilder<unknown> {
  if (term.kind === 'path' || term.kind === 'change') throw new Error('such a term names no documents');
  if (term.kind === 'document') {
    return sql`select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.at >= ${since} and ${documentSatisfies(term)}`;
  }
  const named = namedDocuments(term);
  // An entry has the same item once.
  const isOneItem = named?.relatedDocuments?.length === 1 && named.relatedEntities?.length === 1;
  return sql`select ${isOneItem ? sql`` : sql`distinct`} r.at, r.sequence from change_related r
    where r.tenant = ${tenant} and r.at >= ${since} and ${itemSatisfies(term)}`;
}

/** The smallest set of terms on documents such that at least one holds wherever the expression holds. */
function coverOf(expression: Expression): OpenTerm[] | undefined {
  if (expression.kind === 'and') {
    const covers = expression.operands.map(coverOf).filter((cover) => cover !== undefined);
    return covers.sort((one, other) => costOf(one) - costOf(other))[0];
  }
  if (expression.kind === 'or') {
    const covers = expression.operands.map(coverOf);
    return covers.every((cover) => cover !== undefined) ? covers.flat() : undefined;
  }
  return isOpen(expression) ? [expression] : undefined;
}

function costOf(terms: readonly OpenTerm[]): number {
  return terms.reduce((cost, term) => cost + (namesDocuments(term) ? (term.kind === 'document' ? 1 : 2) : 1_000), 0);
}
