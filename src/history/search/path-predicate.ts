import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { isJsonNumber } from '../../core/json/number.ts';
import type { PathPattern } from '../../core/path-pattern.ts';
import { keysOfPath } from '../../core/path-pattern.ts';
import { mask } from '../../core/sealing.ts';
import { documentField } from '../../query/array-values.ts';
import type { DocumentQuery, Glob, Match, Matcher, Text } from '../../query/ast.ts';
import { documentQueryToSql } from '../../query/document-sql.ts';
import { projectedText } from '../../query/json-projection.ts';
import { likePattern } from '../../query/match.ts';
import { type PathNames, readNumbers } from './names/path-name-store.ts';
import type { ChangeTerm, IdSet, PathCandidates, PathMatcher, PathTerm, ResolvedMatcher } from './plan/expression.ts';
import { listsOfNumbers } from './plan/path-candidates.ts';
import { decidedByText, type SqlCondition } from './values-in-text.ts';

/** The condition of the term on a row `e` of change_entry. */
export function pathSatisfies({ candidates, path }: PathTerm): SqlCondition {
  const reads = sql<SqlBool>`(${mayContain([substringsOf(path.matcher)])} and exists (
    select from jsonb_object_keys(change_paths(e.paths)) as p (path) where ${accepts(path)}))`;
  return anyOf([
    ...hasListed(candidates.certain),
    ...undecided(candidates).map((condition) => sql<SqlBool>`(${condition} and ${reads})`),
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
  const onValues = sides.operands.length + is.length > 0;
  const isHiding = hide.length > 0 && onValues && !paths.some(({ matcher }) => isShown(matcher, hide));
  const [path, ...furtherPaths] = paths;
  const isByNumber = candidates !== undefined && undecided(candidates).length === 0 && furtherPaths.length === 0;
  const ofEntry = pathsOfEntry(paths);
  // Evaluated once for each path, after the conditions that may exclude it.
  const all = isHiding
    ? sql`(select p.path, ${hiddenSides(sql`p.path`, sql`p.sides`, hide)} as sides from ${ofEntry}
        where ${sql.join([sql`p.sides is not null`, ...paths.map(accepts)], sql` and `)} offset 0) as p`
    : ofEntry;
  // Numbers that identify the path make a look for its text needless. The text of the entry has no masks.
  const sought = [
    ...(isByNumber ? [] : paths.map(({ matcher }) => substringsOf(matcher))),
    ...(isHiding ? [] : substringsOfSides(sides)),
  ];
  const exact = sql<SqlBool>`exists (select from ${all} where ${sql.join(conditions, sql` and `)})`;
  const byText =
    isByNumber && !isHiding && path?.matcher.kind === 'text' ? decidedByText(path.matcher.text, term) : undefined;
  const reads = sql<SqlBool>`(${mayContain(sought)} and ${byText === undefined ? exact : sql`coalesce(${byText}, ${exact})`})`;
  if (candidates === undefined) return reads;
  const among = anyOf(hasListed([...candidates.certain, ...candidates.possible]));
  return isByNumber && !onValues ? among : sql`(${among} and ${reads})`;
}

/** Whether each path that the matcher accepts is certainly shown with its values. */
function isShown(matcher: ResolvedMatcher, hide: ChangeTerm['hide']): boolean {
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  return items.every((item) => item.kind === 'text' && !mayHide(hide, item.text));
}

/** The candidate paths with their values. Listing all paths of an entry takes twice as long as taking one. */
function pathsOfEntry(paths: readonly PathMatcher[]): RawBuilder<unknown> {
  const [text] = paths.flatMap(({ matcher }) => (matcher.kind === 'text' ? [matcher.text] : []));
  if (text === undefined) return sql`jsonb_each(change_paths(e.paths)) as p (path, sides)`;
  const path = projectedText(text);
  return sql`(select ${path}::text as path, change_paths(e.paths) -> ${path}::text as sides offset 0) as p`;
}

/** The condition that the numbers of an entry do not identify all of its paths. */
export function mustBeRead(names: PathNames): SqlCondition {
  const numbers = readNumbers(names);
  return numbers.length === 0 ? sql`false` : hasNumber(numbers);
}

function undecided({ possible }: PathCandidates): SqlCondition[] {
  return possible.length === 0 ? [] : [anyOf(hasListed(possible))];
}

/** The condition that an entry has one of these numbers. */
export function hasNumber(numbers: readonly number[]): SqlCondition {
  return anyOf(hasListed(listsOfNumbers(numbers)));
}

/** The same for each of the lists. */
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
      return isInIdSet(matcher, sql`change_document(p.path)`);
  }
}

/** A hash table of PostgreSQL's default `work_mem`, 4 MB, has no room for more hashes: then a binary search is used. */
const maxHashed = 200_000;

/** The condition that a hash is one of those that a regular expression matched. */
export function isInIdSet({ isIn, count, hashes }: IdSet, hash: RawBuilder<unknown>): SqlCondition {
  if (count === 0) return isIn ? sql`false` : sql`true`;
  const isListed =
    count <= maxHashed
      ? sql`${hash} in (select unnest(${hashes}::uuid[]))`
      : sql`exists (
          select from (select (select array_agg(h order by h) from unnest(${hashes}::uuid[]) as h)) as sorted (hashes)
            where sorted.hashes[width_bucket(${hash}, sorted.hashes)] = ${hash})`;
  return isIn ? sql`${isListed}` : sql`not ${isListed}`;
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
  const fields = operands.flatMap((term) =>
    term.kind === 'comparison' || (term.kind === 'match' && !isExists(term.matcher)) ? [term.field] : [],
  );
  return [...new Set(fields)].map(
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

/** Texts of which at least one is in the text of `paths`; undefined: there may be none of them. */
type Substrings = readonly string[] | undefined;

function substringsOf(matcher: ResolvedMatcher): Substrings {
  if (matcher.kind === 'ids') return undefined;
  if (matcher.kind === 'found') return anyOfTexts(matcher.texts.map((text) => longest(text.split(escaped))));
  return substringsOfItems(matcher.kind === 'list' ? matcher.items : [matcher]);
}

/** The longest part of each item that JSON can write as it is; `quote` stands at both ends of its value. */
function substringsOfItems(items: readonly (Text | Glob)[], quote = ''): Substrings {
  const texts = items.map((item) => {
    const parts = (item.kind === 'text' ? [item.text] : item.parts).flatMap((part) => part.split(escaped));
    return longest(
      parts.map((part, at, { length }) => `${at === 0 ? quote : ''}${part}${at === length - 1 ? quote : ''}`),
    );
  });
  return anyOfTexts(texts);
}

function anyOfTexts(texts: readonly string[]): Substrings {
  return texts.includes('') ? undefined : texts;
}

/** Characters with an escape of their own in JSON. All others stand as they are, or after `\\u`. */
const escaped = /["\\/\p{Cc}]/u;

/** The strings that the values must contain, in quotes. Numbers have several forms. */
function substringsOfSides({ operands }: DocumentQuery): Substrings[] {
  return operands.flatMap((term) => {
    if (term.kind !== 'match' || term.matcher.kind === 'regex') return [];
    const items = term.matcher.kind === 'list' ? term.matcher.items : [term.matcher];
    const isString = (item: Text | Glob) =>
      item.kind === 'glob' || item.quoted || !(isJsonNumber(item.text) || keywords.has(item.text));
    return items.every(isString) ? [substringsOfItems(items, '"')] : [];
  });
}

const keywords = new Set(['null', 'true', 'false', 'exists', 'missing']);

function longest(parts: readonly string[]): string {
  return parts.reduce((a, b) => (b.length > a.length ? b : a), '');
}

const maxSought = 16;

/** A quick condition on the text of `paths`, implied by the exact one: without `\u`, JSON has these texts verbatim. */
function mayContain(all: readonly Substrings[]): SqlCondition {
  const conditions = all.flatMap((texts) => {
    if (texts === undefined || texts.length > maxSought) return [];
    return [anyOf(texts.map((text) => sql<SqlBool>`strpos(e.paths, ${text}) > 0`))];
  });
  if (conditions.length === 0) return sql`true`;
  return sql`((${sql.join(conditions, sql` and `)}) or strpos(e.paths, '\\u') > 0)`;
}

/** Nested arrays that a term on values looks into where paths are hidden. What is nested deeper counts as masked. */
export const maxHiddenLevels = 100;

/** The values `sides` of a path as a query sees them where some paths are hidden. */
function hiddenSides(path: RawBuilder<unknown>, sides: RawBuilder<unknown>, hide: readonly PathPattern[]) {
  return sql`change_hidden(${path}, ${sides}, ${hiddenExpression(hide)}, ${maxHiddenLevels}::integer)`;
}

/**
 * Whether a pattern may hide a path, or a value in it. False is certain: the path begins with the first key of no
 * pattern, even if keys that may be array positions are left out.
 */
export function mayHide(hide: readonly PathPattern[], path: string): boolean {
  const keys = keysOfPath(path);
  const named = keys.findIndex((key) => !/^[0-9]*$/.test(key));
  if (named === -1) return true;
  const begins = keys.slice(0, named + 1);
  return hide.some(({ keys: [first = null] }) => first === null || begins.includes(first));
}

const anyKey = '(?:[^.\\\\]|\\\\.)*';
const positions = '(?:[0-9]+\\.)*';

/**
 * A regular expression of PostgreSQL that accepts the paths of entries that are hidden, and those beneath them. A key
 * of digits may be an array position: a pattern applies to each element (recording/mapping/apply-rules.ts). A document
 * that is no object has the path "".
 */
function hiddenExpression(hide: readonly PathPattern[]): string {
  const patterns = hide.map(({ keys }) =>
    keys.map((key) => (key === null ? anyKey : literal(key))).join(`\\.${positions}`),
  );
  return `^\\.?${positions}(?:${patterns.join('|')})(?:\\.|$)`;
}

/** A key as paths have it, with a backslash before a dot and a backslash, escaped for the regular expression. */
function literal(key: string): string {
  return projectedText(key.replace(/[.\\]/g, '\\$&')).replace(/[\\^$.[\]|()*+?{}]/g, '\\$&');
}
