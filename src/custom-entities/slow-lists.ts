import type { FastifyBaseLogger } from 'fastify';
import type { Database } from '../db/database.ts';
import type { Sort } from '../pagination/sort.ts';
import type { DocumentCondition, DocumentQuery, Glob, Text } from '../query/ast.ts';
import { hasSortIndex } from './sort-indexes.ts';

/** A page that takes this many milliseconds or more counts as slow. */
export const slowPage = 1_000;

export interface SlowPage {
  /** Milliseconds. */
  readonly took: number;
  readonly sort: Sort;
  readonly query: DocumentQuery;
}

/**
 * The `Server-Timing` header of a slow page of instances whose sort or filter has no index. The log names the index to
 * build. A quick page, and a page with indexes, has no header.
 */
export async function timingOfSlowPage(
  db: Database,
  logger: Pick<FastifyBaseLogger, 'warn'>,
  { took, sort, query }: SlowPage,
): Promise<Record<string, string>> {
  if (took < slowPage) return {};
  const reasons: string[] = [];
  const fields = [...new Set(fieldsWithoutIndex(query))];
  if (sort.fields.length > 0 && !(await hasSortIndex(db, sort))) {
    reasons.push('sort without an index');
    logger.warn(
      { milliseconds: Math.round(took), sort: sort.text },
      `a sort of instances has no index: annals index create --sort ${JSON.stringify(sort.text)} makes one`,
    );
  }
  if (fields.length > 0) {
    reasons.push('filter without an index');
    logger.warn(
      { milliseconds: Math.round(took), fields },
      'a filter of instances has no index: only field:value terms have one',
    );
  }
  if (reasons.length === 0) return {};
  return { 'Server-Timing': `list;dur=${took.toFixed(1)};desc="${reasons.join(', ')}"` };
}

/** The fields of terms that the index for values cannot answer: ranges, patterns, `null`, `exists` and `missing`. */
function fieldsWithoutIndex(condition: DocumentCondition): string[] {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return condition.operands.flatMap(fieldsWithoutIndex);
    case 'comparison':
      return [condition.field];
    case 'match': {
      const { matcher, field } = condition;
      if (matcher.kind === 'regex') return [field];
      const items = matcher.kind === 'list' ? matcher.items : [matcher];
      return items.every(isValue) ? [] : [field];
    }
  }
}

function isValue(item: Text | Glob): boolean {
  return item.kind === 'text' && (item.quoted || !['null', 'exists', 'missing'].includes(item.text));
}
