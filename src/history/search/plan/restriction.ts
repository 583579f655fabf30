import { invalidField } from '../../../core/errors.ts';
import { type PathPattern, parsePathPattern } from '../../../core/path-pattern.ts';
import { isStorable } from '../../../core/storable-text.ts';
import type { ShownActors, WrittenRestriction } from '../../../core/written-restriction.ts';
import type { ReadRestriction, Restriction } from '../../../http/credentials.ts';
import { insufficientScopes, mayReadContext, type Scope } from '../../../http/scopes.ts';
import { and, andMasked, type Condition, type ItemTerm, type Match, type Query } from '../../../query/ast.ts';
import { compileMatcher } from '../../../query/match.ts';
import { parseQuery } from '../../../query/parse.ts';
import { QueryError } from '../../../query/query-error.ts';
import { isActorField } from './actor-terms.ts';
import { withOpenedCorrelations } from './correlation-terms.ts';
import { changelogDialect } from './dialect.ts';
import { isContextField } from './id-patterns.ts';

/** Maximum paths of one restriction, and UTF-16 units of each. */
export const hideLimits = { paths: 100, characters: 200 } as const;

/** The query of each part applies to what the parts before it show, so their masks hold in it too. */
export const readRestriction: ReadRestriction = (written, author) => {
  let read: Omit<Restriction, 'written'> = { query: and([], 1), hide: [], actors: 'all' };
  let last = read.query;
  for (const [index, { query, hide, actors = true }] of written.entries()) {
    // A query of before may name actors that it does not show. Ids may be named only where they are shown.
    const parsed = readFixedQuery(query, narrowerOf(read.actors, actors === 'all' ? 'all' : true));
    const isOfAuthor = index === written.length - 1 && author?.restriction !== undefined;
    const inner = isOfAuthor ? withOpenedCorrelations(parsed, author.restriction?.correlations) : parsed;
    read = {
      query: andMasked(read.query, inner, read.hide),
      hide: [...read.hide, ...readHidden(hide)],
      actors: narrowerOf(read.actors, actors),
    };
    last = inner;
  }
  if (author !== undefined && !mayReadContext(author.scopes) && usesContext(last)) throw insufficientScopes();
  return { written, ...read };
};

/** What both show of the actors. */
function narrowerOf(a: ShownActors, b: ShownActors): ShownActors {
  return a === 'all' ? b : b === 'all' ? a : a && b;
}

/** The rights that decide which terms a query may have. */
export interface QueryReader {
  readonly restriction?: Pick<Restriction, 'actors' | 'correlations'> | undefined;
  readonly scopes?: readonly Scope[] | undefined;
}

/**
 * A caller's own query. Throws QueryError, also for a term on what the caller does not see of actors, and
 * insufficient_scopes for a term on contexts without the right to read them. A restricted caller has correlation ids
 * sealed: the query that is returned has them opened.
 */
export function parseOwnQuery(q: string, { restriction, scopes = [] }: QueryReader): Query {
  const query = parseVisible(q, restriction?.actors ?? 'all');
  const readsContext = mayReadContext(scopes) && restriction === undefined;
  if (!readsContext && usesContext(query)) throw insufficientScopes();
  return restriction === undefined ? query : withOpenedCorrelations(query, restriction.correlations);
}

/**
 * The query of a subscription, which sends what it finds to a target that sees `actors` of it. Throws QueryError for a
 * term on what the target does not see, and insufficient_scopes for a term on contexts without the right to read them.
 */
export function parseSentQuery(
  q: string,
  { actors, scopes }: { readonly actors: ShownActors; readonly scopes: readonly Scope[] },
): Query {
  const query = parseVisible(q, actors, 'subscription');
  if (!mayReadContext(scopes) && usesContext(query)) throw insufficientScopes();
  return query;
}

/** Whether a term is on a member of the context. */
export function usesContext(query: Query): boolean {
  return termsOf(query).some(({ field }) => isContextField(field));
}

function parseVisible(q: string, actors: ShownActors, reader: 'credential' | 'subscription' = 'credential'): Query {
  const query = parseQuery(q, changelogDialect);
  const term = termsOf(query).find(({ field }) => !showsField(actors, field));
  if (term === undefined) return query;
  const shown = term.field === 'actor' ? 'actors' : 'more of actors than their names: it would need actors: all';
  throw new QueryError(term.position, `no term on ${term.field}: this ${reader} does not show ${shown}`);
}

function showsField(actors: ShownActors, field: string): boolean {
  if (field === 'actor') return actors !== false;
  return actors === 'all' || !(isActorField(field) || field === 'correlationId');
}

/**
 * Throws validation_violation if the caller does not see a field of the entries, and insufficient_scopes for a member
 * of contexts without the right to read them.
 */
export function requireField({ restriction, scopes = [] }: QueryReader, field: string): void {
  if (isContextField(field) && !(mayReadContext(scopes) && restriction === undefined)) throw insufficientScopes();
  const { actors = 'all' } = restriction ?? {};
  if (showsField(actors, field)) return;
  const hidden = field === 'actor' ? 'actors' : 'more of actors than their names';
  throw invalidField('field', `field cannot be ${field}: this credential does not show ${hidden}`);
}

/** The condition on the entity type, if the query shows all entries of a type or none: it has terms on types alone. */
export function entityTypesOf({ query }: Restriction): ((entity: string) => boolean) | undefined {
  if (!termsOf(query).every(({ field }) => field === 'entity')) return undefined;
  return (entity) => holds(query, { entity });
}

/**
 * What a restriction shows as a whole: entity types, documents that it names, or only the changes themselves. The reads
 * that it permits depend on that (docs/access.md).
 */
export function wholesOf(restriction: Restriction): 'entities' | 'documents' | 'changes' {
  if (entityTypesOf(restriction) !== undefined) return 'entities';
  const isOnDocuments = termsOf(restriction.query).every(({ field }) => field === 'entity' || field === 'entityId');
  return isOnDocuments ? 'documents' : 'changes';
}

/** Whether a restriction shows all of a document's history (`true`) or nothing (`false`). Undefined: perhaps a part. */
export function showsDocument(
  restriction: Restriction,
  document: { readonly entity: string; readonly entityId: string },
): boolean | undefined {
  const ofType = entityTypesOf(restriction);
  if (ofType !== undefined) return ofType(document.entity);
  return wholesOf(restriction) === 'documents' && holds(restriction.query, document) ? true : undefined;
}

function holds(condition: Condition, document: Readonly<Record<string, string>>): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.operands.every((operand) => holds(operand, document));
    case 'or':
      return condition.operands.some((operand) => holds(operand, document));
    case 'match': {
      const { field, matcher } = condition;
      const value = document[field];
      return value !== undefined && matcher.kind !== 'regex' && compileMatcher(matcher)(value);
    }
    default:
      return false;
  }
}

/** Every term of a query outside of `elemMatch`, and each `elemMatch` as one. */
function termsOf(condition: Condition): Exclude<Condition, { kind: 'and' | 'or' }>[] {
  return condition.kind === 'and' || condition.kind === 'or' ? condition.operands.flatMap(termsOf) : [condition];
}

/** `actors`: what its terms may name. */
function readFixedQuery(text: string, actors: ShownActors): Query {
  try {
    const query = parseVisible(text, actors);
    const pattern = termsOf(query)
      .flatMap(matchesOf)
      .find(({ matcher }) => matcher.kind === 'regex');
    if (pattern !== undefined) throw new QueryError(pattern.position, 'a term without a regular expression');
    return query;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw invalidField('query', `The query is not valid at position ${error.position}: expected ${error.expected}`);
  }
}

function matchesOf(term: Exclude<Condition, { kind: 'and' | 'or' }>): Match[] {
  const terms: readonly (ItemTerm | Condition)[] = term.kind === 'item' ? term.operand.operands : [term];
  return terms.filter((item) => item.kind === 'match');
}

function readHidden(hide: WrittenRestriction['hide']): PathPattern[] {
  if (hide.length > hideLimits.paths) throw invalidField('hide', `hide has more than ${hideLimits.paths} paths`);
  return hide.map((text, index) => {
    const place = `hide.${index}`;
    if (text === '') throw invalidField(place, `${place} is empty`);
    if (text.length > hideLimits.characters) {
      throw invalidField(place, `${place} has more than ${hideLimits.characters} characters`);
    }
    if (!isStorable(text)) throw invalidField(place, `${place} has a character that is no text`);
    const pattern = parsePathPattern(text);
    if (typeof pattern === 'string') throw invalidField(place, `${place} ${pattern}`);
    return pattern;
  });
}
