import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { TimeSlice } from '../../core/fairness/time-slice.ts';
import { memberSatisfies } from './member-terms.ts';
import type { Dictionary } from './names/dictionary.ts';
import {
  decide,
  type Expression,
  type ExpressionTerm,
  isNever,
  isOpen,
  type OpenTerm,
  termsOf,
} from './plan/expression.ts';
import { possibleKinds } from './plan/tally-plan.ts';
import {
  documentSatisfies,
  isOnTexts,
  itemSatisfies,
  namedDocuments,
  namesDocuments,
  type Satisfies,
} from './predicate.ts';

/** The source of the entries that satisfy a condition on `e`: rows of change_entry, or places first. */
export interface Search {
  tenant: string;
  since: number;
  /** A select of (at, sequence) without duplicates; default: all entries of the tenant. */
  places?: RawBuilder<unknown> | undefined;
  /** Whether the condition is on texts of ids, which an index has. */
  byIds?: boolean;
  /** Whether the planner takes a tenant with many entries for one with next to none. */
  underestimated?: boolean | undefined;
  condition: RawBuilder<SqlBool>;
}

type SearchOptions = Pick<Search, 'tenant' | 'since' | 'underestimated'> & { dictionary: Dictionary; slice: TimeSlice };

/** The search for the entries that satisfy the query because of its terms on documents, and not without them. */
export async function searchOf(
  expression: Expression,
  satisfies: Satisfies,
  { dictionary, slice, ...of }: SearchOptions,
): Promise<Search> {
  const { tenant, since } = of;
  const tallied = talliedPart(expression);
  const kinds = await possibleKinds(expression, dictionary, slice);
  const ofKinds = kinds === null ? sql`true` : sql`e.kind = any (${kinds}::bigint[])`;
  const conditionOf = (part: Expression) =>
    isNever(tallied)
      ? sql<boolean>`${ofKinds} and ${satisfies(part)}`
      : sql<boolean>`${ofKinds} and ${satisfies(part)} and not ${satisfies(tallied)}`;
  const terms = coverOf(expression) ?? termsOf(expression).filter(isOpen);
  const [only, ...further] = terms;
  // An index finds a single term in an AND by its own condition.
  const isIndexed = further.length === 0 && (only?.kind === 'document' || only?.kind === 'member') && isNever(tallied);
  if (isIndexed || only === undefined || !terms.every(namesDocuments)) {
    return { ...of, byIds: termsOf(expression).some(isOnTexts), condition: conditionOf(expression) };
  }
  const places = sql.join(
    terms.map((term) => placesOf(term, tenant, since)),
    sql` union `,
  );
  // All places of a single term satisfy it, so it is not checked again.
  const holds = (term: ExpressionTerm) => term === only || (only.kind === 'related' && term === only.implies);
  const open = further.length > 0 ? expression : decide(expression, (term) => (holds(term) ? true : undefined));
  return { ...of, places, condition: conditionOf(open) };
}

/** The search for all entries that satisfy the query. Indexes find them where its terms on documents decide alone. */
export async function searchOfAll(
  expression: Expression,
  satisfies: Satisfies,
  options: SearchOptions,
): Promise<Search> {
  if (isNever(talliedPart(expression))) return await searchOf(expression, satisfies, options);
  return { tenant: options.tenant, since: options.since, condition: satisfies(expression) };
}

/** What holds of the expression without its terms on documents and paths. */
function talliedPart(expression: Expression): Expression {
  return decide(expression, (term) => (isOpen(term) ? false : undefined));
}

function placesOf(term: OpenTerm, tenant: string, since: number): RawBuilder<unknown> {
  if (term.kind === 'path' || term.kind === 'change') throw new Error('such a term names no documents');
  if (term.kind === 'member') {
    return sql`select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.at >= ${since} and ${memberSatisfies(tenant, term)}`;
  }
  if (term.kind === 'document') {
    return sql`select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.at >= ${since} and ${documentSatisfies(term)}`;
  }
  const named = namedDocuments(tenant, term);
  // An entry has the same item once.
  const isOneItem = named?.relatedDocuments?.length === 1 && named.relatedEntities?.length === 1;
  return sql`select ${isOneItem ? sql`` : sql`distinct`} r.at, r.sequence from change_related r
    where r.tenant = ${tenant} and r.at >= ${since} and ${itemSatisfies(term)}`;
}

/** The smallest set of terms on documents such that at least one holds wherever the expression holds. */
function coverOf(expression: Expression): OpenTerm[] | undefined {
  if (expression.kind === 'and') {
    const covers = expression.operands.map(coverOf).filter((cover) => cover !== undefined);
    return covers.sort((a, b) => costOf(a) - costOf(b))[0];
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
