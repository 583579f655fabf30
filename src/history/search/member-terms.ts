import { hash } from 'node:crypto';
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { projectedText } from '../../query/json-projection.ts';
import { likePattern } from '../../query/match.ts';
import { correlationColumn } from '../entries/entry-store.ts';
import { isInIdSet } from './path-predicate.ts';
import type { MemberTerm, ResolvedMatcher } from './plan/expression.ts';
import type { SqlCondition } from './values-in-text.ts';

// The terms of `q` on what an entry may carry beside its columns: a correlation id, and members of its context. An
// index has a number for each of them (sql/history/indexed/entry_terms.sql).

/** The index has no longer values of members. */
const maxIndexed = 200;

/** Entries that the index has. */
const hasTerms = sql<SqlBool>`(e.correlation is not null or e.correlation_text is not null or e.context is not null)`;

/** The condition of the term on a row `e` of change_entry. */
export function memberSatisfies(tenant: string, term: MemberTerm): SqlCondition {
  const { exists, missing, texts } = term;
  const value = memberValue(term);
  const conditions = [
    ...(exists ? [sql<SqlBool>`${value} is not null`] : []),
    ...(missing ? [sql<SqlBool>`${value} is null`] : []),
    ...(texts === undefined ? [] : [sql<SqlBool>`(${value} is not null and ${accepts(texts, value, storedAs(term))})`]),
  ];
  const condition = sql<SqlBool>`(${sql.join(conditions, sql` or `)})`;
  const numbers = numbersOf(tenant, term);
  return numbers === undefined ? condition : sql`(${condition} and ${hasNumbers(numbers)})`;
}

function hasNumbers(numbers: readonly number[]): SqlCondition {
  return sql`(${hasTerms}
    and entry_terms(e.tenant, e.correlation, e.correlation_text, e.context) && ${numbers}::integer[])`;
}

/** How the database has a text: a correlation id as it is, a member of a context in its projection. */
function storedAs({ context }: Pick<MemberTerm, 'context'>): (text: string) => string {
  return context === undefined ? (text) => text : projectedText;
}

function memberValue({ context }: MemberTerm): RawBuilder<unknown> {
  return context === undefined
    ? sql.raw(correlationColumn)
    : sql`change_context_text(e.context, ${projectedText(context)})`;
}

/** The numbers of the entries that satisfy the term; undefined: the index does not lead to them. */
export function numbersOf(tenant: string, term: MemberTerm): number[] | undefined {
  const texts = term.exists || term.missing ? undefined : exactTexts(term);
  if (texts === undefined || texts.some((text) => [...text].length > maxIndexed)) return undefined;
  const head = term.context === undefined ? 'correlation ' : `context ${projectedText(term.context)}=`;
  return texts.map((text) => hash('sha256', `${tenant} ${head}${text}`, 'buffer').readInt32BE(0));
}

/** Whether the index leads to the entries of the term. */
export function isIndexed(term: MemberTerm): boolean {
  return numbersOf('', term) !== undefined;
}

/** The values that a term accepts, as the database has them; undefined if it has patterns. */
export function exactTexts({ context, texts }: MemberTerm): string[] | undefined {
  if (texts === undefined || (texts.kind !== 'text' && texts.kind !== 'list')) return undefined;
  const items = texts.kind === 'list' ? texts.items : [texts];
  const exact = items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
  if (exact.length < items.length) return undefined;
  return exact.map(storedAs({ context }));
}

function accepts(matcher: ResolvedMatcher, value: RawBuilder<unknown>, stored: (text: string) => string): SqlCondition {
  switch (matcher.kind) {
    case 'text':
      return sql`${value} = ${stored(matcher.text)}`;
    case 'glob':
      return sql`${value} like ${likePattern({ parts: matcher.parts.map(stored) })}`;
    case 'list':
      return sql`(${sql.join(
        matcher.items.map((item) => accepts(item, value, stored)),
        sql` or `,
      )})`;
    case 'found':
      return sql`${value} = any (${matcher.texts}::text[])`;
    case 'ids':
      return isInIdSet(matcher, sql`change_document(${value})`);
  }
}
