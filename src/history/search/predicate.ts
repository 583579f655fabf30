import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { TimeSlice } from '../../core/fairness/time-slice.ts';
import { uuidOf } from '../../core/text-hash.ts';
import { projectedText } from '../../query/json-projection.ts';
import { likePattern } from '../../query/match.ts';
import { exactTexts as exactMembers, isIndexed, memberSatisfies, numbersOf } from './member-terms.ts';
import type { Dictionary } from './names/dictionary.ts';
import { changeSatisfies, isInIdSet, pathSatisfies } from './path-predicate.ts';
import {
  type DocumentTerm,
  type Expression,
  type ExpressionTerm,
  idsOf,
  isAlways,
  isNever,
  type OpenTerm,
  type RelatedTerm,
  type ResolvedMatcher,
  termsOf,
} from './plan/expression.ts';
import type { SqlCondition } from './values-in-text.ts';

/** Writes an expression, or a part of it, as an SQL condition on a row `e` of change_entry. */
export type Satisfies = (expression: Expression) => SqlCondition;

export async function entryConditions(
  tenant: string,
  expression: Expression,
  dictionary: Dictionary,
  slice: TimeSlice,
  maxListedKeys?: number,
): Promise<Satisfies> {
  const ofActors = await actorConditions(expression, dictionary, slice, maxListedKeys);
  const satisfies: Satisfies = (part) => {
    switch (part.kind) {
      case 'and':
      case 'or': {
        if (isAlways(part)) return sql`true`;
        if (isNever(part)) return sql`false`;
        return sql`(${sql.join(part.operands.map(satisfies), part.kind === 'and' ? sql` and ` : sql` or `)})`;
      }
      case 'kinds':
        return sql`e.kind = any (${idsOf(dictionary.kinds, part.members)}::bigint[])`;
      case 'actors': {
        const condition = ofActors.get(part);
        if (condition === undefined) throw new Error('a term of another expression');
        return condition;
      }
      case 'time': {
        const from = part.from === undefined ? sql<SqlBool>`true` : sql<SqlBool>`e.at >= ${part.from}`;
        const to = part.to === undefined ? sql<SqlBool>`true` : sql<SqlBool>`e.at < ${part.to}`;
        return sql`(${from} and ${to})`;
      }
      case 'document':
        return documentSatisfies(part);
      case 'path':
        return pathSatisfies(part);
      case 'change':
        return changeSatisfies(part);
      case 'member':
        return memberSatisfies(tenant, part);
      case 'related':
        // A cluster refuses a subquery that reads nothing, and one whose only tenant is that of a row of a union.
        if ([...part.ids, ...part.entities].some(acceptsNothing)) return sql`false`;
        return sql`exists (
          select from change_related r
            where r.tenant = ${tenant} and r.at = e.at and r.sequence = e.sequence and ${itemSatisfies(part)})`;
    }
  };
  return satisfies;
}

/**
 * The condition of each term on actors, which lists their ids. If a statement would list more than `maxListed` ids,
 * bits say which actors match: they take less memory, and more time for each entry.
 */
async function actorConditions(
  expression: Expression,
  { actors }: Dictionary,
  slice: TimeSlice,
  maxListed = 200_000,
): Promise<ReadonlyMap<Expression, SqlCondition>> {
  const terms = new Set(termsOf(expression).filter((term) => term.kind === 'actors'));
  const conditions = new Map<Expression, SqlCondition>();
  let listed = 0;
  for (const { members } of terms) {
    if (slice.isDue) await slice.rest();
    for (const member of members) listed += member;
  }
  if (listed <= maxListed) {
    for (const term of terms) {
      if (slice.isDue) await slice.rest();
      conditions.set(term, await isListed(idsOf(actors, term.members), slice));
    }
    return conditions;
  }
  const ids = actors.map(({ id }) => id);
  const all = await idsText(ids, slice);
  for (const term of terms) {
    const bits = await bitsOf(term.members, slice);
    // The dictionary has every actor of the tenant, so the place of an actor is the number of actors up to it.
    conditions.set(term, sql`get_bit(${bits}::bit varying, width_bucket(e.actor, ${all}::bigint[]) - 1) = 1`);
  }
  return conditions;
}

/** More actors are looked up in a hash for each entry. For fewer, the planner may read the entries of each actor. */
const maxJoined = 256;

async function isListed(ids: readonly number[], slice: TimeSlice): Promise<SqlCondition> {
  if (ids.length <= fewMembers) return isAmong(sql`e.actor`, ids);
  // As text: the driver would write a long array in one step.
  const isMember = sql<SqlBool>`e.actor in (select unnest(${await idsText(ids, slice)}::bigint[]))`;
  return ids.length <= maxJoined ? isMember : sql`case when ${isMember} then true end`;
}

async function idsText(ids: readonly number[], slice: TimeSlice): Promise<string> {
  const parts: string[] = [];
  for (let start = 0; start < ids.length; start += 4_096) {
    if (slice.isDue) await slice.rest();
    parts.push(ids.slice(start, start + 4_096).join(','));
  }
  return `{${parts.join(',')}}`;
}

/** One bit for each actor in the form that PostgreSQL reads: hexadecimal, the first actor in the highest bit. */
async function bitsOf(members: Uint8Array, slice: TimeSlice): Promise<string> {
  const bytes = Buffer.alloc(Math.ceil(members.length / 8));
  for (const [index, member] of members.entries()) {
    if (index % 65_536 === 0 && slice.isDue) await slice.rest();
    if (member === 1) bytes[index >> 3] = (bytes[index >> 3] ?? 0) | (0x80 >> (index & 7));
  }
  return `x${bytes.toString('hex')}`;
}

export function documentSatisfies({ matcher }: DocumentTerm): SqlCondition {
  return matches(matcher, sql`e.document`, sql`e.entity_id`);
}

export function itemSatisfies(term: RelatedTerm): SqlCondition {
  const ids = term.ids.map((matcher) => matches(matcher, sql`r.document`, sql`r.entity_id`));
  const entities = term.entities.map((matcher) => matches(matcher, undefined, sql`r.entity`));
  return sql`(${sql.join([...ids, ...entities], sql` and `)})`;
}

/** Whether the conditions for an expression join rows to the entries: items, places of documents, lists of actors. */
export function joinsRows(expression: Expression): boolean {
  return termsOf(expression).some((term) => {
    if (term.kind === 'actors') return isListedLong(term.members);
    return term.kind === 'document' || term.kind === 'related';
  });
}

function isListedLong(members: Uint8Array): boolean {
  let count = 0;
  for (let index = members.indexOf(1); index !== -1 && count <= fewMembers; index = members.indexOf(1, index + 1)) {
    count += 1;
  }
  return count > fewMembers;
}

function acceptsNothing(matcher: ResolvedMatcher): boolean {
  return matcher.kind === 'ids' && matcher.isIn && matcher.count === 0;
}

const maxLookedUp = 10_000;

/** Whether the term names its documents one by one, so that an index finds them. False if they are too many. */
export function namesDocuments(term: OpenTerm): boolean {
  if (term.kind === 'path' || term.kind === 'change') return false;
  if (term.kind === 'member') return isIndexed(term);
  return (term.kind === 'document' ? [term.matcher] : term.ids).some(
    (matcher) =>
      exactTexts(matcher) !== undefined || (matcher.kind === 'ids' && matcher.isIn && matcher.count <= maxLookedUp),
  );
}

/** Whether the term is on texts of ids, which have indexes of their own. The other terms are on their hashes. */
export function isOnTexts(term: ExpressionTerm): boolean {
  const hasText = (matcher: ResolvedMatcher): boolean =>
    matcher.kind === 'glob' || (matcher.kind === 'list' && exactTexts(matcher) === undefined);
  return term.kind === 'document' && hasText(term.matcher);
}

/** What a term names one by one, null where it names none. */
interface DocumentLookup {
  /** Hashes of ids. */
  readonly documents: string[] | null;
  readonly relatedDocuments: string[] | null;
  readonly relatedEntities: readonly string[] | null;
  readonly ids: IdRange | null;
  /** Numbers of the index of terms, and the values: correlation ids, or those of a member of the context. */
  readonly terms: readonly number[] | null;
  readonly texts: readonly string[] | null;
  readonly context: string | null;
}

const nothingNamed: DocumentLookup = {
  documents: null,
  relatedDocuments: null,
  relatedEntities: null,
  ids: null,
  terms: null,
  texts: null,
  context: null,
};

/** The documents that a term names one by one, or the range of their ids. Undefined if it has neither, or too many. */
export function namedDocuments(tenant: string, term: OpenTerm): DocumentLookup | undefined {
  if (term.kind === 'member') {
    const numbers = numbersOf(tenant, term);
    const context = term.context === undefined ? null : projectedText(term.context);
    return numbers && { ...nothingNamed, terms: numbers, texts: exactMembers(term) ?? null, context };
  }
  if (term.kind === 'document') {
    const texts = exactTexts(term.matcher);
    const ids = idRangeOf(term.matcher) ?? null;
    if (texts === undefined && ids === null) return undefined;
    return { ...nothingNamed, documents: texts?.map(uuidOf) ?? null, ids };
  }
  if (term.kind !== 'related') return undefined;
  const [ids, ...furtherIds] = term.ids.map(exactTexts);
  const [entities, ...furtherEntities] = term.entities.map(exactTexts);
  if (ids === undefined || furtherIds.length > 0 || furtherEntities.length > 0) return undefined;
  if (term.entities.length > 0 && entities === undefined) return undefined;
  return { ...nothingNamed, relatedDocuments: ids.map(uuidOf), relatedEntities: entities ?? null };
}

function matches(
  matcher: ResolvedMatcher,
  hash: RawBuilder<unknown> | undefined,
  text: RawBuilder<unknown>,
): SqlCondition {
  const texts = exactTexts(matcher);
  if (texts !== undefined) {
    const [only] = texts;
    if (hash === undefined) return sql`${text} = any (${texts}::text[])`;
    if (texts.length === 1 && only !== undefined) return sql`${hash} = ${uuidOf(only)}::uuid`;
    return isAmong(hash, texts.map(uuidOf), sql`uuid`);
  }
  if (matcher.kind === 'ids' && hash !== undefined) return isInIdSet(matcher, hash);
  if (matcher.kind === 'glob') return sql`${text} like ${likePattern(matcher)}`;
  if (matcher.kind === 'list') {
    const items = matcher.items.map((item) => matches(item, hash, text));
    return sql`(${sql.join(items, sql` or `)})`;
  }
  throw new Error(`a ${matcher.kind} names its texts`);
}

function exactTexts(matcher: ResolvedMatcher): readonly string[] | undefined {
  if (matcher.kind === 'text') return [matcher.text];
  if (matcher.kind === 'found') return matcher.texts;
  if (matcher.kind === 'glob' || matcher.kind === 'ids') return undefined;
  const texts = matcher.items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
  return texts.length === matcher.items.length ? texts : undefined;
}

const fewMembers = 16;

/** The database hashes a long list once instead of scanning it for each row. */
function isAmong(value: RawBuilder<unknown>, members: readonly unknown[], type = sql`bigint`): SqlCondition {
  if (members.length <= fewMembers) return sql`${value} = any (${members}::${type}[])`;
  return sql`${value} in (select unnest(${members}::${type}[]))`;
}

/** A pattern of LIKE for ids, and the range of texts that they are in; it excludes `before`. */
export interface IdRange {
  readonly from: string;
  readonly before: string;
  readonly like: string;
}

/** The range of a pattern for the beginning of an id; undefined for any other matcher. */
export function idRangeOf(matcher: ResolvedMatcher): IdRange | undefined {
  if (matcher.kind !== 'glob') return undefined;
  const [from = ''] = matcher.parts;
  const before = from === '' ? undefined : textAfter(from);
  return before === undefined ? undefined : { from, before, like: likePattern(matcher) };
}

/** The first text, in the order of code points, after all texts that begin with `text`; undefined if there is none. */
export function textAfter(text: string): string | undefined {
  const points = [...text];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    // Surrogates are not characters.
    if (next <= 0x10ffff) return points.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next);
  }
  return undefined;
}
