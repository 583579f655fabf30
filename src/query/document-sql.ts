import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { isJsonNumber } from '../core/json/number.ts';
import { arrayValues, meetsArray } from './array-values.ts';
import type { Bound, Comparison, DocumentCondition, DocumentQuery, Glob, Match, Text } from './ast.ts';
import { projectedText } from './json-projection.ts';
import { likePattern } from './match.ts';

type Predicate = RawBuilder<SqlBool>;

/** How a module finds the fields of its documents in its rows. `query` knows no table. */
export interface DocumentMapping {
  readonly document: RawBuilder<unknown>;
  /** The value at the field's path where that meets no array, of type jsonb; null where there is none. */
  value(path: readonly string[]): RawBuilder<unknown>;
  /** The text column, never null, of a field that always has one text, for its index; undefined for other fields. */
  column(path: readonly string[]): RawBuilder<unknown> | undefined;
  /**
   * A condition that an index can answer and that every row fulfils whose value at the path equals `json`, a scalar as
   * JSON text; rows with other values may fulfil it too. undefined where there is none.
   */
  contains(path: readonly string[], json: string): RawBuilder<SqlBool> | undefined;
  /**
   * A condition that an index can answer and that every row fulfils that has a value of the range at the path, also
   * within arrays; other rows may fulfil it too. undefined where there is none.
   */
  range(path: readonly string[], range: ValueRange): RawBuilder<SqlBool> | undefined;
  /** Whether `null` also finds where nothing is; default true. */
  readonly isMissingNull?: boolean;
  /** The strings that the regular expression of this term matches, in the form of the projection. */
  matchedStrings(term: Match): readonly string[];
}

/** Values inside of bounds, or strings that begin with a text. */
export type ValueRange =
  | { readonly kind: 'bounds'; readonly bounds: readonly Bound[] }
  | { readonly kind: 'prefix'; readonly text: string };

/** The range of values that a term looks for; undefined for a term that no range answers. */
export function rangeOfTerm(term: Comparison | Text | Glob): ValueRange | undefined {
  if (term.kind === 'comparison') return { kind: 'bounds', bounds: term.bounds };
  const prefix = term.kind === 'glob' ? (term.parts[0] ?? '') : '';
  return prefix === '' ? undefined : { kind: 'prefix', text: prefix };
}

/** The keys of a field; its name has no escapes. */
export function pathOfField(field: string): string[] {
  return field.split('.');
}

/**
 * Compiles a query to a predicate for rows of documents: true where the query holds, false or null where not. A term
 * compares values of one type only: numbers by value, strings by code point (contract 9). Every value is a parameter.
 */
export function documentQueryToSql(query: DocumentQuery, mapping: DocumentMapping): Predicate {
  return conditionToSql(query, mapping);
}

/** Every term of the query that a regular expression decides. */
export function regexTermsOf(condition: DocumentCondition): Match[] {
  if (condition.kind === 'match') return condition.matcher.kind === 'regex' ? [condition] : [];
  return condition.kind === 'comparison' ? [] : condition.operands.flatMap(regexTermsOf);
}

function conditionToSql(condition: DocumentCondition, mapping: DocumentMapping): Predicate {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const operands = condition.operands.map((operand) => conditionToSql(operand, mapping));
      if (operands.length === 0) return condition.kind === 'and' ? sql`true` : sql`false`;
      return sql`(${sql.join(operands, condition.kind === 'and' ? sql` and ` : sql` or `)})`;
    }
    case 'match':
      return matchToSql(condition, mapping);
    case 'comparison':
      return comparisonToSql(condition, mapping);
  }
}

function matchToSql(term: Match, mapping: DocumentMapping): Predicate {
  const { matcher } = term;
  const path = pathOfField(term.field);
  switch (matcher.kind) {
    case 'text':
    case 'glob':
      return itemToSql(matcher, path, mapping);
    case 'list': {
      const items = matcher.items.map((item) => itemToSql(item, path, mapping));
      return sql`(${sql.join(items, sql` or `)})`;
    }
    case 'regex':
      return stringsToSql(mapping.matchedStrings(term), path, mapping);
  }
}

function itemToSql(item: Text | Glob, path: readonly string[], mapping: DocumentMapping): Predicate {
  if (item.kind === 'glob') {
    const pattern = likePattern({ ...item, parts: item.parts.map(projectedText) });
    const exact = someValue(path, mapping, (value) => isString(value, sql`like ${pattern} escape '\\'`));
    return inRange(exact, item, path, mapping);
  }
  if (!item.quoted) {
    const value = mapping.value(path);
    if (item.text === 'null') {
      if (mapping.isMissingNull === false) return equalsJson('null', path, mapping);
      const isNull = sql<SqlBool>`coalesce(${value}, 'null') = 'null'`;
      return whereArrays(path, mapping, isNull, (values) => sql`(${values} @> 'null' or ${values} = '[]')`);
    }
    if (item.text === 'exists') {
      return whereArrays(path, mapping, sql`${value} is not null`, (values) => sql`${values} <> '[]'`);
    }
    if (item.text === 'missing') {
      return whereArrays(path, mapping, sql`${value} is null`, (values) => sql`${values} = '[]'`);
    }
    if (item.text === 'true' || item.text === 'false' || isJsonNumber(item.text)) {
      return equalsJson(item.text, path, mapping);
    }
  }
  const column = mapping.column(path);
  if (column !== undefined) return sql`${column} = ${projectedText(item.text)}`;
  return equalsJson(JSON.stringify(projectedText(item.text)), path, mapping);
}

const maxContained = 16;

/** Whether one of the values is one of these strings. An index leads to few strings. */
function stringsToSql(strings: readonly string[], path: readonly string[], mapping: DocumentMapping): Predicate {
  if (strings.length === 0) return sql`false`;
  const exact = someValue(path, mapping, (value) => isString(value, sql`= any(${strings}::text[])`));
  if (strings.length > maxContained || mapping.column(path) !== undefined) return exact;
  const supersets = strings.map((text) => mapping.contains(path, JSON.stringify(text)));
  if (supersets.includes(undefined)) return exact;
  return narrowed(exact, orMapByLanguage(sql`(${sql.join(supersets, sql` or `)})`, path, mapping));
}

/** The exact condition comes first: it is cheaper, and without an index the second one is seldom tried. */
function narrowed(exact: Predicate, superset: Predicate | undefined): Predicate {
  // The planner knows how many rows the index finds, and nothing of the exact condition: in coalesce it counts as one
  // half.
  return superset === undefined ? exact : sql`(coalesce(${exact}, false) and ${superset})`;
}

function inRange(
  exact: Predicate,
  term: Comparison | Text | Glob,
  path: readonly string[],
  mapping: DocumentMapping,
): Predicate {
  const range = mapping.column(path) === undefined ? rangeOfTerm(term) : undefined;
  return narrowed(exact, orMapByLanguage(range && mapping.range(path, range), path, mapping));
}

/** Whether the condition holds for the value at the path, or for one of several where the path meets an array. */
function someValue(
  path: readonly string[],
  mapping: DocumentMapping,
  condition: (value: RawBuilder<unknown>) => Predicate,
): Predicate {
  const direct = condition(mapping.value(path));
  if (mapping.column(path) !== undefined) return direct;
  const { document } = mapping;
  const oneOf = (values: RawBuilder<unknown>) =>
    sql<SqlBool>`exists (select from jsonb_array_elements(${values}) element(value) where ${condition(sql`element.value`)})`;
  // The value without arrays is one of the values with them. Most documents have no array there.
  const any = sql<SqlBool>`${direct} or (${meetsArray(document, path)} and ${oneOf(arrayValues(document, path))})`;
  return isMapByLanguage(path) ? sql`(${any} or ${oneOf(textsByLanguage(document))})` : sql`(${any})`;
}

/** Whether a field may be a map by language, in which a term looks into each language (contract 9). */
export function isMapByLanguage(path: readonly string[]): boolean {
  return path.length === 1 && path[0] === 'name';
}

/** The texts of the name in all languages, as elements of a jsonb array; none where the name is no map. */
export function textsByLanguage(document: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`jsonb_path_query_array(${document}, 'strict $ ? (@."name".type() == "object")."name".*'::jsonpath)`;
}

/** A condition that an index answers unless the field is a map. Documents with a map have an index of their own. */
function orMapByLanguage(
  superset: Predicate | undefined,
  path: readonly string[],
  { document }: DocumentMapping,
): Predicate | undefined {
  if (superset === undefined || !isMapByLanguage(path)) return superset;
  return sql`(${superset} or jsonb_typeof(${document} -> 'name') = 'object')`;
}

/** The first condition where the path meets no array, and the other one where it does. */
function whereArrays(
  path: readonly string[],
  { document, column }: DocumentMapping,
  plain: Predicate,
  ofValues: (values: RawBuilder<unknown>) => Predicate,
): Predicate {
  if (column(path) !== undefined) return plain;
  return sql`case when ${meetsArray(document, path)} then ${ofValues(arrayValues(document, path))} else ${plain} end`;
}

function equalsJson(json: string, path: readonly string[], mapping: DocumentMapping): Predicate {
  const direct = sql<SqlBool>`${mapping.value(path)} = ${json}::jsonb`;
  if (mapping.column(path) !== undefined) return direct;
  const { document } = mapping;
  const ofArrays = sql`${meetsArray(document, path)} and ${arrayValues(document, path)} @> ${json}::jsonb`;
  const ofMap = isMapByLanguage(path) ? sql`or ${textsByLanguage(document)} @> ${json}::jsonb` : sql``;
  const exact = sql<SqlBool>`(${direct} or (${ofArrays}) ${ofMap})`;
  return narrowed(exact, orMapByLanguage(mapping.contains(path, json), path, mapping));
}

function comparisonToSql(term: Comparison, mapping: DocumentMapping): Predicate {
  const path = pathOfField(term.field);
  const exact = someValue(path, mapping, (value) => {
    const conditions = term.bounds.map((bound) => boundToSql(value, bound));
    return sql`(${sql.join(conditions, sql` and `)})`;
  });
  return inRange(exact, term, path, mapping);
}

/** jsonb compares numbers by value, but strings by the database's collation. */
function boundToSql(value: RawBuilder<unknown>, { operator, type, text }: Bound): Predicate {
  if (type === 'number') {
    return sql`(jsonb_typeof(${value}) = 'number' and ${value} ${sqlOperators[operator]} ${text}::jsonb)`;
  }
  return isString(value, sql`${sqlOperators[operator]} ${projectedText(text)}`);
}

/** Whether the value is a string that fulfils the condition, compared by code point. */
function isString(value: RawBuilder<unknown>, condition: RawBuilder<unknown>): Predicate {
  return sql`(jsonb_typeof(${value}) = 'string' and (${value} #>> '{}') collate "C" ${condition})`;
}

export const sqlOperators = { '>': sql`>`, '>=': sql`>=`, '<': sql`<`, '<=': sql`<=` } as const;
