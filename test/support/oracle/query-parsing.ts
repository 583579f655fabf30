import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import type { Condition, ItemTerm, Matcher, Query } from '../../../src/query/ast.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { QueryError } from '../../../src/query/query-error.ts';

/** A query of the change history. */
export function parse(text: string): Query {
  return parseQuery(text, changelogDialect);
}

/** The error of a text; undefined where it is a query. */
export function errorOf(text: string): QueryError | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}

/** The error of a query that is expected to have one. */
export function faultOf(text: string): QueryError {
  const error = errorOf(text);
  if (error === undefined) throw new Error(`this is a query: ${text}`);
  return error;
}

/** What the value of a query's only term is read as. */
export function matcherOf(text: string): Matcher {
  const [term, ...others] = parse(text).operands;
  if (term?.kind !== 'match' || others.length > 0) throw new Error(`not one match: ${text}`);
  return term.matcher;
}

/** A tree without its positions, in few words: `actor=Jane`, `and(…)`. */
export function outline(condition: Condition | ItemTerm): string {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return `${condition.kind}(${condition.operands.map(outline).join(', ')})`;
    case 'match':
      return `${condition.field}=${outlineMatcher(condition.matcher)}`;
    case 'comparison':
      return `${condition.field}=${condition.bounds.map(({ operator, text }) => operator + text).join(' ')}`;
    case 'time':
      return `${condition.field}=${condition.from ?? ''}..${condition.to ?? ''}`;
    case 'item':
      return `${condition.field}=item(${condition.operand.operands.map(outline).join(', ')})`;
  }
}

function outlineMatcher(matcher: Matcher): string {
  switch (matcher.kind) {
    case 'text':
      return matcher.text;
    case 'glob':
      return `glob(${matcher.parts.join('*')})`;
    case 'regex':
      return `regex(${matcher.source})`;
    case 'list':
      return `list(${matcher.items.map(outlineMatcher).join('; ')})`;
  }
}
