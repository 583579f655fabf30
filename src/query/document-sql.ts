import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { isJsonNumber } from '../json/number.ts';
import type { Bound, Comparison, DocumentCondition, DocumentQuery, Glob, Match, Text } from './ast.ts';
import { projectedText } from './json-projection.ts';
import { likePattern } from './like-pattern.ts';

type Predicate = RawBuilder<SqlBool>;

/** How a room finds the fields of its documents in its rows. `query` knows no table. */
export interface DocumentMapping {
  /** The value at the field's path, of type jsonb; null where there is none. */
  value(path: readonly string[]): RawBuilder<unknown>;
  /** The column of a field that is also a text column, never null, so that its index serves; undefined for all others. */
  column(path: readonly string[]): RawBuilder<unknown> | undefined;
  /**
   * A condition that an index can answer and that every row fulfils whose value at the path equals `json`, a scalar as JSON text;
   * rows with other values may fulfil it too. undefined where there is none.
   */
  contains(path: readonly string[], json: string): RawBuilder<SqlBool> | undefined;
  /** The strings that the regular expression of this term matches, in the form of the projection. */
  matchedStrings(term: Match): readonly string[];
}

/** The keys of a field; its name has no escapes. */
export function pathOfField(field: string): string[] {
  return field.split('.');
}

/**
 * Compiles a query to a predicate for rows of documents: true where the query holds, false or null where not. A term compares
 * values of one type only: numbers by value, strings by code point (contract 9). Every value is a parameter.
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
    case 'regex': {
      const value = mapping.value(path);
      return sql`(jsonb_typeof(${value}) = 'string' and ${value} #>> '{}' = any(${mapping.matchedStrings(term)}::text[]))`;
    }
  }
}

function itemToSql(item: Text | Glob, path: readonly string[], mapping: DocumentMapping): Predicate {
  const value = mapping.value(path);
  if (item.kind === 'glob') {
    const pattern = likePattern({ ...item, parts: item.parts.map(projectedText) });
    return sql`(jsonb_typeof(${value}) = 'string' and (${value} #>> '{}') collate "C" like ${pattern} escape '\\')`;
  }
  if (!item.quoted) {
    if (item.text === 'null') return sql`coalesce(${value}, 'null') = 'null'`;
    if (item.text === 'exists') return sql`${value} is not null`;
    if (item.text === 'missing') return sql`${value} is null`;
    if (item.text === 'true' || item.text === 'false' || isJsonNumber(item.text)) {
      return equalsJson(item.text, path, mapping);
    }
  }
  const column = mapping.column(path);
  if (column !== undefined) return sql`${column} = ${projectedText(item.text)}`;
  return equalsJson(JSON.stringify(projectedText(item.text)), path, mapping);
}

/** The exact condition comes first: it is cheaper, and where no index is used the other one is seldom tried. */
function equalsJson(json: string, path: readonly string[], mapping: DocumentMapping): Predicate {
  const exact = sql<SqlBool>`${mapping.value(path)} = ${json}::jsonb`;
  const superset = mapping.contains(path, json);
  // The planner knows how many rows the index finds, and nothing of the exact condition: in coalesce it counts as one half.
  return superset === undefined ? exact : sql`(coalesce(${exact}, false) and ${superset})`;
}

function comparisonToSql({ field, bounds }: Comparison, mapping: DocumentMapping): Predicate {
  const value = mapping.value(pathOfField(field));
  return sql`(${sql.join(
    bounds.map((bound) => boundToSql(value, bound)),
    sql` and `,
  )})`;
}

/** jsonb compares numbers by value, but strings by the database's collation. */
function boundToSql(value: RawBuilder<unknown>, { operator, type, text }: Bound): Predicate {
  if (type === 'number') {
    return sql`(jsonb_typeof(${value}) = 'number' and ${value} ${sqlOperators[operator]} ${text}::jsonb)`;
  }
  return sql`(jsonb_typeof(${value}) = 'string' and
    (${value} #>> '{}') collate "C" ${sqlOperators[operator]} ${projectedText(text)})`;
}

const sqlOperators = { '>': sql`>`, '>=': sql`>=`, '<': sql`<`, '<=': sql`<=` } as const;
