import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Condition, Glob, ItemMatch, List, Match, Query, Regex, Text, TimeRange } from './ast.ts';

/** How the fields of a query are found in the rows it is asked of. This room knows no table. */
export interface SqlMapping {
  /** A match on a field: `matcherToSql` makes one of a column, and a related field needs a subquery round it. */
  match(match: Match): RawBuilder<SqlBool>;
  /** A column of milliseconds since 1970, of type bigint, never null. */
  time(field: string): RawBuilder<unknown>;
  item(item: ItemMatch): RawBuilder<SqlBool>;
}

/**
 * The texts that a regular expression matches, as an array or as SQL that gives one (`text[]`). They are
 * found beforehand, because PostgreSQL's own regular expressions are not linear in the text.
 */
export type MatchedNames = readonly string[] | RawBuilder<readonly string[]>;

/** A predicate for plain rows: true where the query's conditions hold, never null. Every value is a parameter. */
export function queryToSql(query: Query, mapping: SqlMapping): RawBuilder<SqlBool> {
  return conditionToSql(query, mapping);
}

/** A predicate on one column of text; compares bytes, so case and everything else counts. */
export function matcherToSql(
  column: RawBuilder<unknown>,
  matcher: Text | Glob | List | Regex,
  matchedNames: (regex: Regex) => MatchedNames,
): RawBuilder<SqlBool> {
  switch (matcher.kind) {
    case 'text':
      return sql`${column} = ${matcher.text}`;
    case 'glob':
      return likeToSql(column, matcher);
    case 'regex': {
      const names = matchedNames(matcher);
      return sql`${column} = any(${isSql(names) ? names : textArray(names)})`;
    }
    case 'list': {
      const texts = matcher.items.filter((item) => item.kind === 'text').map((item) => item.text);
      const globs = matcher.items.filter((item) => item.kind === 'glob').map((item) => likeToSql(column, item));
      const alternatives = texts.length === 0 ? globs : [sql<SqlBool>`${column} = any(${textArray(texts)})`, ...globs];
      return joined(alternatives, sql` or `);
    }
  }
}

/** The pattern that LIKE wants for a glob, with a backslash before what LIKE would take for more than itself. */
export function likePattern({ parts }: Glob): string {
  return parts.map((part) => part.replaceAll(/[\\%_]/g, '\\$&')).join('%');
}

function conditionToSql(condition: Condition, mapping: SqlMapping): RawBuilder<SqlBool> {
  switch (condition.kind) {
    case 'and':
      if (condition.operands.length === 0) return sql`true`;
      return joined(operandsToSql(condition.operands, mapping), sql` and `);
    case 'or':
      if (condition.operands.length === 0) return sql`false`;
      return joined(operandsToSql(condition.operands, mapping), sql` or `);
    case 'match':
      return mapping.match(condition);
    case 'time':
      return timeToSql(mapping.time(condition.field), condition);
    case 'item':
      return mapping.item(condition);
  }
}

function operandsToSql(operands: readonly Condition[], mapping: SqlMapping): RawBuilder<SqlBool>[] {
  return operands.map((operand) => conditionToSql(operand, mapping));
}

function timeToSql(column: RawBuilder<unknown>, { from, to }: TimeRange): RawBuilder<SqlBool> {
  const bounds: RawBuilder<SqlBool>[] = [];
  if (from !== undefined) bounds.push(sql`${column} >= ${from}::bigint`);
  if (to !== undefined) bounds.push(sql`${column} < ${to}::bigint`);
  return joined(bounds, sql` and `);
}

function likeToSql(column: RawBuilder<unknown>, glob: Glob): RawBuilder<SqlBool> {
  return sql`${column} collate "C" like ${likePattern(glob)} escape '\\'`;
}

function joined(predicates: readonly RawBuilder<SqlBool>[], operator: RawBuilder<unknown>): RawBuilder<SqlBool> {
  const [only] = predicates;
  return only !== undefined && predicates.length === 1 ? only : sql`(${sql.join(predicates, operator)})`;
}

function textArray(texts: readonly string[]): RawBuilder<readonly string[]> {
  return sql`${texts}::text[]`;
}

function isSql(names: MatchedNames): names is RawBuilder<readonly string[]> {
  return 'toOperationNode' in names;
}
