import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { isJsonNumber } from '../../core/json/number.ts';
import { mask } from '../../core/sealing.ts';
import type { Comparison, DocumentCondition, Glob, Match, Text } from '../../query/ast.ts';
import { sqlOperators } from '../../query/document-sql.ts';
import { likePattern } from '../../query/match.ts';
import type { ChangeTerm } from './plan/expression.ts';

export type SqlCondition = RawBuilder<SqlBool>;

/**
 * Decides the term from the text of an entry `e` that has the path, without parsing it, which takes three times as
 * long: true or false, or null where the text does not decide. Undefined: it never does.
 *
 * Recording writes compact JSON, in which a path has two sides at most. Without a backslash, a key is written as it is
 * and is no part of a string, so a key that occurs once is the path. Before a second object begins, `"after":` is the
 * side of that path. The text behind it up to a comma or a brace is the value, or its beginning. A blank there decides
 * nothing.
 */
export function decidedByText(path: string, { sides, is }: ChangeTerm): SqlCondition | undefined {
  const decisions = [...sides.operands.map(decidedSide), ...is.map(decidedDirection)];
  if (!isPlain.test(path) || decisions.length === 0 || !isComplete(decisions)) return undefined;
  // Nested, because joins would take longer than what they join.
  const rest = sql`select split_part(e.paths, ${`"${path}":{`}, 2) as rest offset 0`;
  const cut = sql`select found.rest, split_part(found.rest, '}', 1) as sides from (${rest}) as found offset 0`;
  const values = sql`select cut.*, ${begin('before')} as before, ${begin('after')} as after from (${cut}) as cut offset 0`;
  return sql<SqlBool>`(
    select case when strpos(e.paths, '\\') = 0 and path.rest like '%}' then ${sql.join(decisions, sql` and `)} end from (${values}) as path)`;
}

function isComplete(decisions: readonly (SqlCondition | undefined)[]): decisions is SqlCondition[] {
  return !decisions.includes(undefined);
}

/** A text that JSON writes as it is, and that is no part of JSON before its begin. */
const isPlain = /^[\p{L}\p{N}_][^"\\\p{Cc}]*$/u;

/** The begin of a value; all of a number, or of a text without commas and braces. Empty: no side, or cut off. */
function begin(side: 'before' | 'after'): RawBuilder<unknown> {
  return sql`split_part(split_part(cut.sides, ${sql.lit(`"${side}":`)}, 2), ',', 1)`;
}

function decidedSide(term: DocumentCondition): SqlCondition | undefined {
  if (term.kind !== 'match' && term.kind !== 'comparison') return undefined;
  const value = sql.ref(`path.${term.field}`);
  const decided = term.kind === 'match' ? equals(term, value) : isWithin(term, value);
  // Behind the begin of another object the key may be its own. A term holds for an array if it holds for an element.
  const isDecided = sql`strpos(path.sides, '{') = 0 and ${value} >= '"' collate "C" and ${value} not like '[%'`;
  return decided && sql<SqlBool>`case when ${isDecided} then ${decided} end`;
}

function equals({ matcher }: Match, value: RawBuilder<unknown>): SqlCondition | undefined {
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  const decisions = items.map((item) => (item.kind === 'regex' ? undefined : equalsItem(item, value)));
  return isComplete(decisions) ? sql<SqlBool>`(${sql.join(decisions, sql` or `)})` : undefined;
}

/** The value is present and no array. */
function equalsItem(item: Text | Glob, value: RawBuilder<unknown>): SqlCondition | undefined {
  if (item.kind === 'glob') {
    if (!item.parts.every((part) => isWhole.test(part))) return undefined;
    const pattern = likePattern({ parts: [`"${item.parts[0]}`, ...item.parts.slice(1, -1), `${item.parts.at(-1)}"`] });
    const isMatch = sql`${value} like ${pattern} and ${value} <> ${`"${mask}"`}`;
    return sql<SqlBool>`case when ${value} like '"%"' or ${value} not like '"%' then ${isMatch} end`;
  }
  const { text, quoted } = item;
  if (!quoted && isJsonNumber(text)) return number(value, (left) => sql`${left} = ${text}::numeric`);
  if (!quoted && text === 'exists') return sql<SqlBool>`true`;
  if (!quoted && text === 'missing') return sql<SqlBool>`false`;
  if (!quoted && literals.has(text)) return sql<SqlBool>`${value} = ${text}`;
  return isWhole.test(text) && text !== mask ? sql<SqlBool>`${value} = ${`"${text}"`}` : undefined;
}

const literals = new Set(['null', 'true', 'false']);

/** A text that is the same in JSON, and that no comma or brace divides. */
const isWhole = /^[^",{}\\\p{Cc}]*$/u;

function isWithin({ bounds }: Comparison, value: RawBuilder<unknown>): SqlCondition | undefined {
  if (bounds.some(({ type }) => type !== 'number')) return undefined;
  return number(value, (left) =>
    sql.join(
      bounds.map(({ operator, text }) => sql`${left} ${sqlOperators[operator]} ${text}::numeric`),
      sql` and `,
    ),
  );
}

function decidedDirection({ matcher }: Match): SqlCondition {
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  const operators = items.map((item) => sqlOperators[item.kind === 'text' && item.text === 'lower' ? '<' : '>']);
  const compared = (before: RawBuilder<unknown>) => (after: RawBuilder<unknown>) =>
    sql`(${sql.join(
      operators.map((operator) => sql`${after} ${operator} ${before}`),
      sql` or `,
    )})`;
  return number(sql`path.before`, (before) => number(sql`path.after`, compared(before)));
}

/** Whether a value is a number that meets the condition; null where it may be one that the database does not know. */
function number(value: RawBuilder<unknown>, meets: (number: RawBuilder<unknown>) => RawBuilder<unknown>): SqlCondition {
  // Of 7 characters it is not too large, with any exponent; of 1,000 digits neither.
  const isKnown = sql`octet_length(${value}) < 8
    or (octet_length(${value}) < 1000 and strpos(${value}, 'e') = 0 and strpos(${value}, 'E') = 0)`;
  return sql<SqlBool>`case when ${value} >= '-' collate "C" and ${value} < ':' collate "C"
      then case when ${isKnown} then ${meets(sql`${value}::numeric`)} end
    when ${value} = '' or ${value} >= '"' collate "C" then false end`;
}
