import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { isJsonNumber } from '../../core/json/number.ts';
import type { PathPattern } from '../../core/path-pattern.ts';
import { mask } from '../../core/sealing.ts';
import { documentField } from '../../query/array-values.ts';
import type { DocumentQuery, List, Match, Matcher } from '../../query/ast.ts';
import { documentQueryToSql } from '../../query/document-sql.ts';
import { projectedText } from '../../query/json-projection.ts';
import { likePattern } from '../../query/match.ts';
import { keysOfPath } from '../../recording/rebuild/entry-changes.ts';
import { type PathNames, readNumbers } from './names/path-name-store.ts';
import type { ChangeTerm, IdSet, PathCandidates, PathMatcher, PathTerm, ResolvedMatcher } from './plan/expression.ts';
import { listsOfNumbers } from './plan/path-candidates.ts';
import { toldByText } from './values-in-text.ts';

/** Arrays in each other that a term on values looks into where paths are hidden. What is in more of them counts as masked. */
export const maxHiddenLevels = 100;

/** The values `sides` of a path as a query may ask for them, where some paths are hidden. */
function hiddenSides(
  path: RawBuilder<unknown>,
  sides: RawBuilder<unknown>,
  hide: readonly PathPattern[],
): RawBuilder<unknown> {
  return sql`change_hidden(${path}, ${sides}, ${hiddenExpression(hide)}, ${maxHiddenLevels}::integer)`;
}

/**
 * Whether a pattern may hide a path, or a value in it. False is sure: the first key of no pattern is one that the path begins with, where keys that may
 * be places count as left out.
 */
export function mayHide(hide: readonly PathPattern[], path: string): boolean {
  const keys = keysOfPath(path);
  const named = keys.findIndex((key) => !/^[0-9]*$/.test(key));
  if (named === -1) return true;
  const begins = keys.slice(0, named + 1);
  return hide.some(({ keys: [first = null] }) => first === null || begins.includes(first));
}

/**
 * A regular expression of PostgreSQL that accepts the paths of entries that are hidden, and those beneath them. A key of
 * digits may be a place in an array, where a pattern goes on in each element (recording/mapping/apply-rules.ts). A document that is no
 * object has the path "".
 */
function hiddenExpression(hide: readonly PathPattern[]): string {
  const patterns = hide.map(({ keys }) =>
    keys.map((key) => (key === null ? anyKey : literal(key))).join(`\\.${places}`),
  );
  return `^\\.?${places}(?:${patterns.join('|')})(?:\\.|$)`;
}

const anyKey = '(?:[^.\\\\]|\\\\.)*';
const places = '(?:[0-9]+\\.)*';

/** A key as it stands in a path: a dot and a backslash have a backslash before them. */
function literal(key: string): string {
  return projectedText(key.replace(/[.\\]/g, '\\$&')).replace(/[\\^$.[\]|()*+?{}]/g, '\\$&');
}

/**
 * If `work_mem` is PostgreSQL's 4 MB, a hash table has no memory for more hashes than this. The query then uses a binary
 * search.
 */
const maxHashed = 200_000;

/** The condition that a hash is one of those that a regular expression found. */
export function isFound({ isIn, count, hashes }: IdSet, hash: RawBuilder<unknown>): RawBuilder<SqlBool> {
  if (count === 0) return isIn ? sql`false` : sql`true`;
  const isTold =
    count <= maxHashed
      ? sql`${hash} in (select unnest(${hashes}::uuid[]))`
      : sql`exists (
          select from (select (select array_agg(one order by one) from unnest(${hashes}::uuid[]) as one)) as told (hashes)
            where told.hashes[width_bucket(${hash}, told.hashes)] = ${hash})`;
  return isIn ? sql`${isTold}` : sql`not ${isTold}`;
}

type SqlCondition = RawBuilder<SqlBool>;

/** The condition that the term is on a row `e` of change_entry. */
export function pathSatisfies({ candidates, path }: PathTerm): SqlCondition {
  const reads = sql<SqlBool>`(${mayContain([textsOf(path.matcher)])} and exists (
    select from jsonb_object_keys(change_paths(e.paths)) as p (path) where ${accepts(path)}))`;
  return anyOf([
    ...hasListed(candidates.certain),
    ...withoutTold(candidates).map((condition) => sql<SqlBool>`(${condition} and ${reads})`),
  ]);
}

/** The same for a condition on one path and its values. */
export function changeSatisfies(term: ChangeTerm): SqlCondition {
  const { candidates, paths, sides, is, hide } = term;
  const conditions = [
    sql`p.sides is not null`,
    ...paths.map(accepts),
    documentQueryToSql(sides, sidesOfPath),
    ...sidesAreNoMasks(sides),
    ...is.map(comparesNumbers),
  ];
  const asksForValues = sides.operands.length + is.length > 0;
  const isHiding = hide.length > 0 && asksForValues && !paths.some(({ matcher }) => isShown(matcher, hide));
  const [path, ...others] = paths;
  const isTold = candidates !== undefined && withoutTold(candidates).length === 0 && others.length === 0;
  const ofEntry = pathsOfEntry(paths);
  // Evaluated once for each path, after the conditions that it may be left out by.
  const all = isHiding
    ? sql`(select p.path, ${hiddenSides(sql`p.path`, sql`p.sides`, hide)} as sides from ${ofEntry}
        where ${sql.join([sql`p.sides is not null`, ...paths.map(accepts)], sql` and `)} offset 0) as p`
    : ofEntry;
  // Numbers that tell the path need no look for its text. The text of the entry has no masks.
  const sought = [
    ...(isTold ? [] : paths.map(({ matcher }) => textsOf(matcher))),
    ...(isHiding ? [] : textsOfSides(sides)),
  ];
  const exact = sql<SqlBool>`exists (select from ${all} where ${sql.join(conditions, sql` and `)})`;
  const told = isTold && !isHiding && path?.matcher.kind === 'text' ? toldByText(path.matcher.text, term) : undefined;
  const reads = sql<SqlBool>`(${mayContain(sought)} and ${told === undefined ? exact : sql`coalesce(${told}, ${exact})`})`;
  if (candidates === undefined) return reads;
  const { certain, possible } = candidates;
  const among = anyOf(hasListed([...certain, ...possible]));
  return isTold && !asksForValues ? among : sql`(${among} and ${reads})`;
}

/** Whether it is sure that each path that the matcher accepts is shown with its values. */
function isShown(matcher: ResolvedMatcher, hide: ChangeTerm['hide']): boolean {
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  return items.every((item) => item.kind === 'text' && !mayHide(hide, item.text));
}

/** The paths that come into question, with their values. To list all paths of an entry takes twice as long as to take one. */
function pathsOfEntry(paths: readonly PathMatcher[]): RawBuilder<unknown> {
  const [text] = paths.flatMap(({ matcher }) => (matcher.kind === 'text' ? [matcher.text] : []));
  if (text === undefined) return sql`jsonb_each(change_paths(e.paths)) as p (path, sides)`;
  const path = projectedText(text);
  return sql`(select ${path}::text as path, change_paths(e.paths) -> ${path}::text as sides offset 0) as p`;
}

/** The condition that the numbers of an entry do not tell all of its paths. */
export function mustBeRead(names: PathNames): SqlCondition {
  const numbers = readNumbers(names);
  return numbers.length === 0 ? sql`false` : hasNumber(numbers);
}

function withoutTold({ possible }: PathCandidates): SqlCondition[] {
  return possible.length === 0 ? [] : [anyOf(hasListed(possible))];
}

/** The condition that an entry has one of these numbers. */
export function hasNumber(numbers: readonly number[]): SqlCondition {
  return anyOf(hasListed(listsOfNumbers(numbers)));
}

/** The same for each of some lists. */
function hasListed(lists: readonly string[]): SqlCondition[] {
  return lists.map((list) => sql<SqlBool>`e.path_numbers && ${list}::integer[]`);
}

function anyOf(conditions: readonly SqlCondition[]): SqlCondition {
  return conditions.length === 0 ? sql`false` : sql`(${sql.join(conditions, sql` or `)})`;
}

/** Whether the matcher accepts `p.path`. */
function accepts({ matcher, beneath }: PathMatcher): SqlCondition {
  switch (matcher.kind) {
    case 'text': {
      const text = projectedText(matcher.text);
      const isText = sql<SqlBool>`p.path = ${text}`;
      return beneath ? sql`(${isText} or starts_with(p.path, ${`${text}.`}))` : isText;
    }
    case 'glob':
      return sql`p.path like ${likePattern({ parts: matcher.parts.map(projectedText) })}`;
    case 'list':
      return anyOf(matcher.items.map((item) => accepts({ matcher: item, beneath })));
    case 'found':
      return sql`p.path = any (${matcher.texts}::text[])`;
    case 'ids':
      return isFound(matcher, sql`change_document(p.path)`);
  }
}

/** A path with its values, as documentQueryToSql reads a document: `{"before": …, "after": …}`. */
const sidesOfPath = {
  document: sql`p.sides`,
  value: (path: readonly string[]) => documentField(sql`p.sides`, path),
  isMissingNull: false,
  column: () => undefined,
  contains: () => undefined,
  range: () => undefined,
  matchedStrings: () => [],
};

/** A masked side satisfies `:exists` alone. */
function sidesAreNoMasks({ operands }: DocumentQuery): SqlCondition[] {
  const asked = operands.flatMap((term) =>
    term.kind === 'comparison' || (term.kind === 'match' && !isExists(term.matcher)) ? [term.field] : [],
  );
  return [...new Set(asked)].map(
    (side) => sql`(p.sides -> ${sql.lit(side)}) is distinct from ${JSON.stringify(mask)}::jsonb`,
  );
}

function isExists(matcher: Matcher): boolean {
  if (matcher.kind === 'list') return matcher.items.some(isExists);
  return matcher.kind === 'text' && !matcher.quoted && matcher.text === 'exists';
}

/** `is:lower` and `is:higher` compare two numbers. */
function comparesNumbers({ matcher }: Match): SqlCondition {
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  const comparisons = items.map((item) => {
    const operator = item.kind === 'text' && item.text === 'lower' ? sql`<` : sql`>`;
    return sql<SqlBool>`p.sides -> 'after' ${operator} p.sides -> 'before'`;
  });
  const areNumbers = sql`jsonb_typeof(p.sides -> 'before') = 'number' and jsonb_typeof(p.sides -> 'after') = 'number'`;
  // The comparison comes first: half of the changes fail it.
  return sql`(${anyOf(comparisons)} and ${areNumbers})`;
}

/** Texts of which one must be in the text of `paths`; undefined: it may have none of them. */
type Texts = readonly string[] | undefined;

function textsOf(matcher: ResolvedMatcher): Texts {
  if (matcher.kind === 'ids') return undefined;
  if (matcher.kind === 'found') return matcher.texts;
  return textsOfItems(matcher.kind === 'list' ? matcher.items : [matcher]);
}

function textsOfItems(items: List['items']): Texts {
  const texts = items.map((item) => (item.kind === 'text' ? item.text : longest(item.parts)));
  return texts.includes('') ? undefined : texts;
}

/** What the values that are asked for have in them, which are strings, in quotes. Numbers have several forms. */
function textsOfSides({ operands }: DocumentQuery): Texts[] {
  return operands.flatMap((term) => {
    if (term.kind !== 'match' || term.matcher.kind === 'regex') return [];
    const items = term.matcher.kind === 'list' ? term.matcher.items : [term.matcher];
    const isText = (item: List['items'][number]) =>
      item.kind === 'glob' || item.quoted || !(isJsonNumber(item.text) || keywords.has(item.text));
    return items.every(isText) ? [textsOfItems(items.map(inQuotes))] : [];
  });
}

function inQuotes(item: List['items'][number]): List['items'][number] {
  if (item.kind === 'text') return { ...item, text: `"${item.text}"` };
  return {
    ...item,
    parts: item.parts.map((part, at, { length }) => `${at === 0 ? '"' : ''}${part}${at === length - 1 ? '"' : ''}`),
  };
}

const keywords = new Set(['null', 'true', 'false', 'exists', 'missing']);

function longest(parts: readonly string[]): string {
  return parts.reduce((one, other) => (other.length > one.length ? other : one), '');
}

/**
 * A quick condition on the text of `paths`, which holds wherever the exact one does: without a backslash, JSON has each
 * text as it is.
 */
function mayContain(all: readonly Texts[]): SqlCondition {
  const conditions = all.flatMap((texts) => {
    if (texts === undefined || texts.length > maxSought) return [];
    return [anyOf(texts.map((text) => sql<SqlBool>`strpos(e.paths, ${text}) > 0`))];
  });
  if (conditions.length === 0) return sql`true`;
  return sql`((${sql.join(conditions, sql` and `)}) or strpos(e.paths, '\\') > 0)`;
}

const maxSought = 16;
