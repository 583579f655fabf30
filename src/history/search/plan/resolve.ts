import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import { and, type Condition, type ItemMatch, type Match } from '../../../query/ast.ts';
import { compileMatcher } from '../../../query/match.ts';
import type { RegexBudget, RegexMatcherPool } from '../../../query/regex-pool.ts';
import type { Dictionary } from '../names/dictionary.ts';
import type { PathNames } from '../names/path-name-store.ts';
import { type ActorField, matchActors, presenceOf } from './actor-terms.ts';
import type { ChangeTerm, Expression, MemberTerm, NameTerm, PathMatcher, ResolvedMatcher } from './expression.ts';
import { type IdField, type IdMatches, isContextField } from './id-patterns.ts';
import { pathCandidates } from './path-candidates.ts';

interface Resolver {
  readonly dictionary: Dictionary;
  readonly regexes: RegexMatcherPool;
  readonly budget: RegexBudget;
  /** The matches of the regular expressions on ids; undefined if there are none. */
  readonly ids?: IdMatches;
  /** Undefined if no term is on paths. */
  readonly paths?: PathNames;
}

/** Resolves every name of a query. Rejects with QueryError if a regular expression exceeds the budget. */
export async function resolve(condition: Condition, resolver: Resolver): Promise<Expression> {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const operands: Expression[] = [];
      for (const operand of condition.operands) operands.push(await resolve(operand, resolver));
      return { kind: condition.kind, operands: await mergeNameTerms(condition.kind, operands) };
    }
    case 'time':
      return { kind: 'time', from: condition.from, to: condition.to };
    case 'item':
      return condition.field === 'change'
        ? await resolveChange(condition, resolver)
        : await resolveRelated(condition, resolver);
    case 'match':
      return await resolveMatch(condition, resolver);
  }
}

/** The terms on paths themselves, of which a query on their values may have none; undefined if it is on neither. */
export function termsOnPaths(condition: Condition): readonly Match[] | undefined {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const terms = condition.operands.map(termsOnPaths).filter((found) => found !== undefined);
      return terms.length === 0 ? undefined : terms.flat();
    }
    case 'item':
      return condition.field === 'change' ? itemTerms(condition, 'path') : undefined;
    case 'match':
      return condition.field === 'path' ? [condition] : undefined;
    case 'time':
      return undefined;
  }
}

function itemTerms({ operand }: ItemMatch, field: string): Match[] {
  return operand.operands.filter((term) => term.kind === 'match').filter((term) => term.field === field);
}

/** Whether an index may lead to the entries of a term: one on ids, a correlation id or a member of the context. */
export function needsDocumentIds(condition: Condition): boolean {
  if (condition.kind === 'and' || condition.kind === 'or') return condition.operands.some(needsDocumentIds);
  if (condition.kind === 'item') return condition.operand.operands.some((term) => term.field === 'entityId');
  return condition.kind === 'match' && (indexedFields.has(condition.field) || isContextField(condition.field));
}

const indexedFields: ReadonlySet<string> = new Set(['entityId', 'related.entityId', 'correlationId']);

/** Merges the terms on kinds of a group into one, and those on actors too: later steps have fewer terms. */
async function mergeNameTerms(kind: 'and' | 'or', operands: readonly Expression[]): Promise<Expression[]> {
  const kinds = operands.filter((operand) => operand.kind === 'kinds');
  const actors = operands.filter((operand) => operand.kind === 'actors');
  const rest = operands.filter((operand) => operand.kind !== 'kinds' && operand.kind !== 'actors');
  return [...(await mergeTerms(kind, kinds)), ...(await mergeTerms(kind, actors)), ...rest];
}

async function mergeTerms<Of extends 'kinds' | 'actors'>(
  kind: 'and' | 'or',
  terms: readonly NameTerm<Of>[],
): Promise<readonly NameTerm<Of>[]> {
  const [first, ...further] = terms;
  if (first === undefined || further.length === 0) return terms;
  const slice = new TimeSlice();
  // A copy: other queries use the cached matches.
  const members = first.members.slice();
  for (const term of further) {
    if (slice.isDue) await slice.rest();
    for (let index = 0; index < members.length; index++) {
      const member = term.members[index] ?? 0;
      if (kind === 'and' ? member === 0 : member === 1) members[index] = member;
    }
  }
  return [{ kind: first.kind, members }];
}

async function resolveMatch(term: Match, resolver: Resolver): Promise<Expression> {
  const { kinds, actors } = resolver.dictionary;
  const { field } = term;
  switch (field) {
    case 'actor': {
      const names = () => actors.map((actor) => actor.name);
      return { kind: 'actors', members: await matchNames(field, names, term, resolver) };
    }
    case 'actorId':
    case 'onBehalfOf':
    case 'onBehalfOfId':
      return { kind: 'actors', members: await matchOptional({ ...term, field }, resolver) };
    case 'type':
    case 'entity': {
      const names = () => kinds.map((kind) => kind[field]);
      return { kind: 'kinds', members: await matchNames(field, names, term, resolver) };
    }
    case 'related.entity':
      return { kind: 'kinds', members: await matchRelatedEntities([term], resolver) };
    case 'entityId':
      return { kind: 'document', matcher: resolveIds(term, 'document', resolver) };
    case 'path': {
      const candidates = await candidatesOf([term], resolver);
      return { kind: 'path', candidates, path: pathMatcher(term, resolver) };
    }
    case 'related.entityId':
      return { kind: 'related', entities: [], ids: [resolveIds(term, 'related', resolver)] };
    case 'correlationId':
      return memberTerm(term, undefined, resolver);
    default:
      if (isContextField(field)) return memberTerm(term, field, resolver);
      throw new Error(`the field ${field} has no meaning`);
  }
}

function memberTerm({ matcher, ...term }: Match, field: IdField | undefined, resolver: Resolver): MemberTerm {
  const { exists, missing, texts } = presenceOf(matcher);
  return {
    kind: 'member',
    context: field?.slice('context.'.length),
    exists,
    missing,
    texts: texts && resolveIds({ ...term, matcher: texts }, field ?? 'document', resolver),
  };
}

async function resolveRelated(item: ItemMatch, resolver: Resolver): Promise<Expression> {
  const onIds = itemTerms(item, 'entityId');
  const onEntities = itemTerms(item, 'entity');
  if (onIds.length === 0) return { kind: 'kinds', members: await matchRelatedEntities(onEntities, resolver) };
  const ids = onIds.map((term) => resolveIds(term, 'related', resolver));
  const entities: ResolvedMatcher[] = [];
  for (const term of onEntities) entities.push(await resolveRelatedEntities(term, resolver));
  if (onEntities.length === 0) return { kind: 'related', entities, ids };
  // Only entries of kinds with such a related entity can match, so only these are read.
  const implies: NameTerm<'kinds'> = { kind: 'kinds', members: await matchRelatedEntities(onEntities, resolver) };
  return { kind: 'and', operands: [implies, { kind: 'related', entities, ids, implies }] };
}

async function resolveChange(item: ItemMatch, resolver: Resolver): Promise<ChangeTerm> {
  const { operand, position, hide = [] } = item;
  const onPaths = itemTerms(item, 'path');
  const onSides = operand.operands.filter(({ field }) => field === 'before' || field === 'after');
  return {
    kind: 'change',
    candidates: onPaths.length === 0 ? undefined : await candidatesOf(onPaths, resolver),
    paths: onPaths.map((term) => pathMatcher(term, resolver)),
    sides: and(onSides, position),
    is: itemTerms(item, 'is'),
    hide,
  };
}

async function candidatesOf(terms: readonly Match[], { paths, ...resolver }: Resolver) {
  if (paths === undefined) throw new Error('the names of the paths were not read');
  return await pathCandidates(terms, paths, resolver);
}

function pathMatcher(term: Match, resolver: Resolver): PathMatcher {
  return { matcher: resolveIds(term, 'path', resolver), beneath: term.beneath === true };
}

/** The kinds with one related entity type that satisfies all the terms. */
async function matchRelatedEntities(terms: readonly Match[], resolver: Resolver): Promise<Uint8Array> {
  const { kinds } = resolver.dictionary;
  const entities = relatedEntitiesOf(resolver.dictionary);
  const matched: Uint8Array[] = [];
  for (const term of terms) matched.push(await matchNames('related', () => entities, term, resolver));
  const satisfying = new Set(entities.filter((_entity, index) => matched.every((members) => members[index] === 1)));
  return Uint8Array.from(kinds, (kind) => (kind.relatedEntities.some((entity) => satisfying.has(entity)) ? 1 : 0));
}

async function resolveRelatedEntities(term: Match, resolver: Resolver): Promise<ResolvedMatcher> {
  if (term.matcher.kind !== 'regex') return term.matcher;
  const entities = relatedEntitiesOf(resolver.dictionary);
  const members = await matchNames('related', () => entities, term, resolver);
  return { kind: 'found', texts: entities.filter((_entity, index) => members[index] === 1) };
}

function resolveIds({ matcher }: Match, of: IdField, { ids }: Resolver): ResolvedMatcher {
  if (matcher.kind !== 'regex') return matcher;
  if (ids === undefined) throw new Error('the expressions of the query were not tried on ids');
  return ids.get(of, matcher.source);
}

function relatedEntitiesOf(dictionary: Dictionary): string[] {
  return [...new Set(dictionary.kinds.flatMap((kind) => kind.relatedEntities))];
}

async function matchOptional(term: Match & { field: ActorField }, resolver: Resolver): Promise<Uint8Array> {
  const matchTexts = (texts: readonly string[], ofTexts: Match) => matchEach(term.field, texts, ofTexts, resolver);
  const { actors } = resolver.dictionary;
  return await shared(
    term.field,
    () => actors,
    term,
    resolver,
    (among) => matchActors(among, term, matchTexts),
  );
}

async function matchNames(
  of: string,
  names: () => readonly string[],
  term: Match,
  resolver: Resolver,
): Promise<Uint8Array> {
  return await shared(of, names, term, resolver, (among) => matchEach(of, among, term, resolver));
}

/** One byte for each name. All callers share the matches of a pattern in a dictionary. */
async function shared<Named>(
  of: string,
  names: () => readonly Named[],
  term: Match,
  { dictionary: { matched } }: Resolver,
  match: (names: readonly Named[]) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const key = `${of} ${JSON.stringify(term.matcher)}`;
  try {
    const known = matched.get(key);
    if (known !== undefined) return await known;
  } catch {
    // The pattern exceeded the budget of another query, not of this one.
  }
  const among = names();
  const matching = match(among);
  matched.set(key, matching, among.length);
  try {
    return await matching;
  } catch (error) {
    if (matched.get(key) === matching) matched.delete(key);
    throw error;
  }
}

async function matchEach(
  of: string,
  names: readonly string[],
  { matcher, position }: Match,
  { regexes, budget }: Resolver,
): Promise<Uint8Array> {
  if (matcher.kind !== 'regex') return await matchInSlices(names, compileMatcher(matcher));
  if (of === 'actor') return await regexes.matchNames(matcher.source, names, { position, budget });
  // Many kinds share an entity; each name is tried once.
  const distinct = [...new Set(names)];
  const members = await regexes.matchNames(matcher.source, distinct, { position, budget });
  const matching = new Set(distinct.filter((_name, index) => members[index] === 1));
  return Uint8Array.from(names, (name) => (matching.has(name) ? 1 : 0));
}

async function matchInSlices(names: readonly string[], matches: (name: string) => boolean): Promise<Uint8Array> {
  // Other callers may wait for the same result, so the work continues when one of them leaves.
  const slice = new TimeSlice();
  const members = new Uint8Array(names.length);
  for (const [index, name] of names.entries()) {
    if (index % 256 === 0 && slice.isDue) await slice.rest();
    members[index] = matches(name) ? 1 : 0;
  }
  return members;
}
