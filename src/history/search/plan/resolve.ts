import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import { and, type Condition, type ItemMatch, type Match } from '../../../query/ast.ts';
import { compileMatcher } from '../../../query/match.ts';
import type { RegexBudget, RegexMatcherPool } from '../../../query/regex-pool.ts';
import type { Dictionary } from '../names/dictionary.ts';
import type { PathNames } from '../names/path-name-store.ts';
import type { ChangeTerm, Expression, Members, PathMatcher, PathTerm, ResolvedMatcher } from './expression.ts';
import type { IdMatches, IdsOf } from './id-patterns.ts';
import { pathCandidates } from './path-candidates.ts';

export interface Resolver {
  readonly dictionary: Dictionary;
  readonly regexes: RegexMatcherPool;
  readonly budget: RegexBudget;
  /** The matches of the regular expressions on ids; undefined if there are none. */
  readonly ids?: IdMatches;
  /** Undefined if no term is on paths. */
  readonly paths?: PathNames;
}

/** Looks up every name of a query. Rejects with QueryError if a regular expression exceeds the budget. */
export async function resolve(condition: Condition, resolver: Resolver): Promise<Expression> {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const operands: Expression[] = [];
      for (const operand of condition.operands) operands.push(await resolve(operand, resolver));
      return { kind: condition.kind, operands: await joined(condition.kind, operands) };
    }
    case 'time':
      return { kind: 'time', from: condition.from, to: condition.to };
    case 'item':
      return condition.field === 'change'
        ? await resolveChange(condition, resolver)
        : await resolveItem(condition, resolver);
    case 'match':
      return await resolveMatch(condition, resolver);
  }
}

/** The terms on paths themselves, which may be none of a query on their values; undefined if it is on neither. */
export function termsOnPaths(condition: Condition): readonly Match[] | undefined {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const terms = condition.operands.map(termsOnPaths).filter((some) => some !== undefined);
      return terms.length === 0 ? undefined : terms.flat();
    }
    case 'item':
      return condition.field === 'change' ? pathsOf(condition) : undefined;
    case 'match':
      return condition.field === 'path' ? [condition] : undefined;
    case 'time':
      return undefined;
  }
}

function pathsOf({ operand }: ItemMatch): Match[] {
  return operand.operands.filter((term) => term.kind === 'match').filter(({ field }) => field === 'path');
}

/** The fields whose terms need the document, or the related document, itself. */
export function needsDocumentIds(condition: Condition): boolean {
  if (condition.kind === 'and' || condition.kind === 'or') return condition.operands.some(needsDocumentIds);
  if (condition.kind === 'item') return condition.operand.operands.some((term) => term.field === 'entityId');
  return condition.kind === 'match' && (condition.field === 'entityId' || condition.field === 'related.entityId');
}

/** Merges terms on kinds of the same group into one, and terms on actors too. The later steps then have fewer terms. */
async function joined(kind: 'and' | 'or', operands: readonly Expression[]): Promise<Expression[]> {
  const kinds = operands.filter((operand) => operand.kind === 'kinds');
  const actors = operands.filter((operand) => operand.kind === 'actors');
  const others = operands.filter((operand) => operand.kind !== 'kinds' && operand.kind !== 'actors');
  return [...(await asOne(kind, kinds)), ...(await asOne(kind, actors)), ...others];
}

async function asOne<Of extends 'kinds' | 'actors'>(
  kind: 'and' | 'or',
  [first, ...others]: readonly Members<Of>[],
): Promise<Members<Of>[]> {
  if (first === undefined || others.length === 0) return first === undefined ? [] : [first];
  const slice = new TimeSlice();
  // A copy: other queries use the cached matches.
  const members = first.members.slice();
  for (const other of others) {
    if (slice.isDue) await slice.rest();
    for (let index = 0; index < members.length; index++) {
      const member = other.members[index] ?? 0;
      if (kind === 'and' ? member === 0 : member === 1) members[index] = member;
    }
  }
  return [{ kind: first.kind, members }];
}

async function resolveMatch(term: Match, resolver: Resolver): Promise<Expression> {
  const { dictionary } = resolver;
  const { kinds } = dictionary;
  switch (term.field) {
    case 'actor': {
      const names = () => dictionary.actors.map((actor) => actor.name);
      return { kind: 'actors', members: await matchNames('actor', names, term, resolver) };
    }
    case 'type':
      return {
        kind: 'kinds',
        members: await matchNames('type', () => kinds.map((kind) => kind.type), term, resolver),
      };
    case 'entity':
      return {
        kind: 'kinds',
        members: await matchNames('entity', () => kinds.map((kind) => kind.entity), term, resolver),
      };
    case 'related.entity':
      return { kind: 'kinds', members: await matchRelatedEntities([term], resolver) };
    case 'entityId':
      return { kind: 'document', matcher: resolveIds(term, 'document', resolver) };
    case 'path':
      return await resolvePath(term, resolver);
    case 'related.entityId':
      return { kind: 'related', entities: [], ids: [resolveIds(term, 'related', resolver)] };
    default:
      throw new Error(`no meaning is given to the field ${term.field}`);
  }
}

async function resolveItem(item: ItemMatch, resolver: Resolver): Promise<Expression> {
  const operands = item.operand.operands.filter((term) => term.kind === 'match');
  const onIds = operands.filter((term) => term.field === 'entityId');
  const onEntities = operands.filter((term) => term.field === 'entity');
  if (onIds.length === 0) return { kind: 'kinds', members: await matchRelatedEntities(onEntities, resolver) };
  const ids = onIds.map((term) => resolveIds(term, 'related', resolver));
  const entities: ResolvedMatcher[] = [];
  for (const term of onEntities) entities.push(await resolveRelatedEntities(term, resolver));
  if (onEntities.length === 0) return { kind: 'related', entities, ids };
  // Only kinds with such a related entity can match, so Annals reads only their entries.
  const implies: Members<'kinds'> = { kind: 'kinds', members: await matchRelatedEntities(onEntities, resolver) };
  return { kind: 'and', operands: [implies, { kind: 'related', entities, ids, implies }] };
}

async function resolvePath(term: Match, resolver: Resolver): Promise<PathTerm> {
  return { kind: 'path', candidates: await candidatesOf([term], resolver), path: pathMatcher(term, resolver) };
}

async function resolveChange(item: ItemMatch, resolver: Resolver): Promise<ChangeTerm> {
  const { operand, position, hide = [] } = item;
  const onPaths = pathsOf(item);
  const onSides = operand.operands.filter(({ field }) => field === 'before' || field === 'after');
  return {
    kind: 'change',
    candidates: onPaths.length === 0 ? undefined : await candidatesOf(onPaths, resolver),
    paths: onPaths.map((term) => pathMatcher(term, resolver)),
    sides: and(onSides, position),
    is: operand.operands.filter((term) => term.kind === 'match').filter(({ field }) => field === 'is'),
    hide,
  };
}

async function candidatesOf(terms: readonly Match[], { paths, ...means }: Resolver) {
  if (paths === undefined) throw new Error('the names of the paths were not read');
  return await pathCandidates(terms, paths, means);
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

function resolveIds({ matcher }: Match, of: IdsOf, { ids }: Resolver): ResolvedMatcher {
  if (matcher.kind !== 'regex') return matcher;
  if (ids === undefined) throw new Error('the expressions of the query were not tried on ids');
  return ids.get(of, matcher.source);
}

function relatedEntitiesOf(dictionary: Dictionary): string[] {
  return [...new Set(dictionary.kinds.flatMap((kind) => kind.relatedEntities))];
}

/** One byte for each name. All callers share the matches of a pattern in a dictionary. */
async function matchNames(
  of: string,
  names: () => readonly string[],
  term: Match,
  resolver: Resolver,
): Promise<Uint8Array> {
  const { matched } = resolver.dictionary;
  const key = `${of} ${JSON.stringify(term.matcher)}`;
  try {
    const known = matched.get(key);
    if (known !== undefined) return await known;
  } catch {
    // The pattern exceeded the budget of another query, not of this one.
  }
  const among = names();
  const matching = matchEach(of, among, term, resolver);
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
  if (matcher.kind !== 'regex') return await matchEachPaced(names, compileMatcher(matcher));
  if (of === 'actor') return await regexes.matchNames(matcher.source, names, { position, budget });
  // Many kinds share an entity; Annals tries each name once.
  const distinct = [...new Set(names)];
  const members = await regexes.matchNames(matcher.source, distinct, { position, budget });
  const found = new Set(distinct.filter((_name, index) => members[index] === 1));
  return Uint8Array.from(names, (name) => (found.has(name) ? 1 : 0));
}

async function matchEachPaced(names: readonly string[], matches: (name: string) => boolean): Promise<Uint8Array> {
  // Other callers may wait for the same result, so the work goes on when one of them leaves.
  const slice = new TimeSlice();
  const members = new Uint8Array(names.length);
  for (const [index, name] of names.entries()) {
    if (index % 256 === 0 && slice.isDue) await slice.rest();
    members[index] = matches(name) ? 1 : 0;
  }
  return members;
}
