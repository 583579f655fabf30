import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { likePattern } from '../query/like-pattern.ts';
import { uuidOf } from '../recording/entry-columns.ts';
import type { Dictionary } from './dictionary.ts';
import {
  type DocumentTerm,
  type Expression,
  idsOf,
  isAlways,
  isNever,
  type RelatedTerm,
  type ResolvedMatcher,
} from './expression.ts';

type Condition = RawBuilder<SqlBool>;

/** The condition that a row `e` of change_entry satisfies the expression. */
export function satisfies(expression: Expression, dictionary: Dictionary): Condition {
  switch (expression.kind) {
    case 'and':
    case 'or': {
      if (isAlways(expression)) return sql`true`;
      if (isNever(expression)) return sql`false`;
      const operands = expression.operands.map((operand) => satisfies(operand, dictionary));
      return sql`(${sql.join(operands, expression.kind === 'and' ? sql` and ` : sql` or `)})`;
    }
    case 'kinds':
      return sql`e.kind = any (${idsOf(dictionary.kinds, expression.members)}::bigint[])`;
    case 'actors':
      return isAmong(sql`e.actor`, idsOf(dictionary.actors, expression.members));
    case 'time': {
      const from = expression.from === undefined ? sql<SqlBool>`true` : sql<SqlBool>`e.at >= ${expression.from}`;
      const to = expression.to === undefined ? sql<SqlBool>`true` : sql<SqlBool>`e.at < ${expression.to}`;
      return sql`(${from} and ${to})`;
    }
    case 'document':
      return documentSatisfies(expression);
    case 'related':
      return sql`exists (
        select from change_related r
          where r.tenant = e.tenant and r.at = e.at and r.sequence = e.sequence and ${itemSatisfies(expression)})`;
  }
}

/** The condition that the document of a row `e` of change_entry is meant. */
export function documentSatisfies(term: DocumentTerm): Condition {
  return matches(term.matcher, sql`e.document`, sql`e.entity_id`);
}

/** The condition that a row `r` of change_related is meant. */
export function itemSatisfies(term: RelatedTerm): Condition {
  const ids = term.ids.map((matcher) => matches(matcher, sql`r.document`, sql`r.entity_id`));
  const entities = term.entities.map((matcher) => matches(matcher, undefined, sql`r.entity`));
  return sql`(${sql.join([...ids, ...entities], sql` and `)})`;
}

/** Whether the term names its documents one by one, so that an index leads to them. */
export function namesDocuments(term: DocumentTerm | RelatedTerm): boolean {
  return (term.kind === 'document' ? [term.matcher] : term.ids).some((matcher) => exactTexts(matcher) !== undefined);
}

/** The hashes of the documents that a term names one by one; undefined where it does not, or says more. */
export function namedDocuments(term: DocumentTerm | RelatedTerm):
  | {
      documents: string[] | null;
      relatedDocuments: string[] | null;
      relatedEntities: readonly string[] | null;
    }
  | undefined {
  if (term.kind === 'document') {
    const texts = exactTexts(term.matcher);
    if (texts === undefined) return undefined;
    return { documents: texts.map(uuidOf), relatedDocuments: null, relatedEntities: null };
  }
  const [ids, ...otherIds] = term.ids.map(exactTexts);
  const [entities, ...otherEntities] = term.entities.map(exactTexts);
  if (ids === undefined || otherIds.length > 0 || otherEntities.length > 0) return undefined;
  if (term.entities.length > 0 && entities === undefined) return undefined;
  return { documents: null, relatedDocuments: ids.map(uuidOf), relatedEntities: entities ?? null };
}

function matches(
  matcher: ResolvedMatcher,
  hash: RawBuilder<unknown> | undefined,
  text: RawBuilder<unknown>,
): Condition {
  const texts = exactTexts(matcher);
  if (texts !== undefined) {
    const [only] = texts;
    if (hash === undefined) return sql`${text} = any (${texts}::text[])`;
    if (texts.length === 1 && only !== undefined) return sql`${hash} = ${uuidOf(only)}::uuid`;
    return isAmong(hash, texts.map(uuidOf), sql`uuid`);
  }
  if (matcher.kind === 'glob') return sql`${text} like ${likePattern(matcher)}`;
  if (matcher.kind === 'list') {
    return sql`(${sql.join(
      matcher.items.map((item) => matches(item, hash, text)),
      sql` or `,
    )})`;
  }
  throw new Error(`a ${matcher.kind} names its texts`);
}

/** The texts that a matcher takes, where it names them one by one. */
function exactTexts(matcher: ResolvedMatcher): readonly string[] | undefined {
  if (matcher.kind === 'text') return [matcher.text];
  if (matcher.kind === 'found') return matcher.texts;
  if (matcher.kind === 'glob') return undefined;
  const texts = matcher.items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
  return texts.length === matcher.items.length ? texts : undefined;
}

/** A long list is hashed once instead of being gone through for each row. */
function isAmong(value: RawBuilder<unknown>, members: readonly unknown[], type = sql`bigint`): Condition {
  if (members.length <= 16) return sql`${value} = any (${members}::${type}[])`;
  return sql`${value} in (select unnest(${members}::${type}[]))`;
}
