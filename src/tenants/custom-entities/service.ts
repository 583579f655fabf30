import type { FastifyBaseLogger } from 'fastify';
import { isEmptyPage } from '../../pagination/page-texts.ts';
import type { ListParameters, Page, PageRequest } from '../../pagination/paginator.ts';
import type { Sort } from '../../pagination/sort.ts';
import type { Database } from '../../postgres/database.ts';
import type { DocumentCondition, DocumentQuery, Glob, Text } from '../../query/ast.ts';
import { rangeOfTerm } from '../../query/document-sql.ts';
import { parseDocumentQuery } from '../../query/parse.ts';
import { withPlainRegexes } from '../../query/plain-regex.ts';
import { withFields } from './document-lists.ts';
import { canHaveRangeIndex } from './key-ranges.ts';
import { findDocuments, instancesOf, type ReadContext, typesOf } from './read-documents.ts';
import { typeNotFound } from './refusals.ts';
import { hasSortIndex, listFieldIndexes } from './sort-indexes.ts';
import { typeTable } from './store.ts';
import { createOwnInstances, type OwnInstances } from './write-instances.ts';
import { createOwnTypes, type OwnTypes, type WriteContext } from './write-types.ts';

/** Milliseconds from which a page counts as slow. */
export const slowPage = 1_000;

interface SlowPage {
  /** Milliseconds. */
  readonly took: number;
  readonly sort: Sort;
  readonly query: DocumentQuery;
}

/**
 * The `Server-Timing` header of a slow page of instances whose sort or filter has no index; otherwise none. The log
 * names the missing index.
 */
export async function timingOfSlowPage(
  db: Database,
  logger: Pick<FastifyBaseLogger, 'warn'>,
  { took, sort, query: filter }: SlowPage,
): Promise<Record<string, string>> {
  if (took < slowPage) return {};
  const query = withPlainRegexes(filter);
  const reasons: string[] = [];
  const warn = (about: object, message: string) => logger.warn({ milliseconds: Math.round(took), ...about }, message);
  const terms = unindexedTerms(query);
  const indexed = terms.length === 0 ? [] : await listFieldIndexes(db);
  if (sort.fields.length > 0 && !(await hasSortIndex(db, sort))) {
    reasons.push('sort without an index');
    warn(
      { sort: sort.text },
      `a sort of instances has no index: annals index create --sort ${JSON.stringify(sort.text)} makes one`,
    );
  }
  const hasIndex = ({ field }: UnindexedTerm) => indexed.some(({ path }) => path.join('.') === field);
  const slow = terms.filter((term) => !term.isRange || !hasIndex(term));
  if (slow.length > 0) reasons.push('filter without an index');
  for (const field of new Set(slow.filter(({ isRange }) => isRange).map((term) => term.field))) {
    warn({ fields: [field] }, `a filter of instances has no index: annals index create --filters ${field} makes one`);
  }
  const fields = [...new Set(slow.filter(({ isRange }) => !isRange).map(({ field }) => field))];
  if (fields.length > 0) {
    warn({ fields }, 'a filter of instances can have no index: only values, ranges and beginnings of strings have one');
  }
  if (reasons.length === 0) return {};
  return { 'Server-Timing': `list;dur=${took.toFixed(1)};desc="${reasons.join(', ')}"` };
}

/** A term that the value index cannot answer. */
interface UnindexedTerm {
  readonly field: string;
  /** Whether a sort index on the field could answer it. */
  readonly isRange: boolean;
}

function unindexedTerms(condition: DocumentCondition): UnindexedTerm[] {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return condition.operands.flatMap(unindexedTerms);
    case 'comparison':
      return [{ field: condition.field, isRange: canHaveRangeIndex(condition.field) }];
    case 'match': {
      const { matcher, field } = condition;
      if (matcher.kind === 'regex') return [{ field, isRange: false }];
      const items = (matcher.kind === 'list' ? matcher.items : [matcher]).filter((item) => !isValue(item));
      return items.map((item) => ({ field, isRange: rangeOfTerm(item) !== undefined && canHaveRangeIndex(field) }));
    }
  }
}

function isValue(item: Text | Glob): boolean {
  return item.kind === 'text' && (item.quoted || !['null', 'exists', 'missing'].includes(item.text));
}

/** Custom entity types and their instances (contract 9), as JSON texts. */
export interface CustomEntities {
  readonly types: OwnTypes & {
    list(tenant: string, q: string, page: PageRequest): Promise<Page>;
  };
  readonly instances: OwnInstances & {
    list(tenant: string, type: string, query: ListParameters, page: PageRequest): Promise<Page>;
  };
}

export function createCustomEntities(
  context: ReadContext & WriteContext & { logger: Pick<FastifyBaseLogger, 'warn'> },
): CustomEntities {
  const { db } = context;
  return {
    types: {
      ...createOwnTypes(context),
      list: (tenant, q, page) => findDocuments(context, typesOf(tenant), parseDocumentQuery(q), page),
    },
    instances: {
      ...createOwnInstances(context),
      list: (tenant, type, { q = '', fields }, pageRequest) =>
        withFields(fields, async () => {
          const query = parseDocumentQuery(q);
          const began = performance.now();
          const page = await findDocuments(context, instancesOf(tenant, type), query, pageRequest);
          const took = performance.now() - began;
          // An empty list may mean that the type does not exist.
          if (isEmptyPage(page.texts) && (await typeTable.find(db, tenant, type)) === undefined) throw typeNotFound();
          const timing = await timingOfSlowPage(db, context.logger, { took, sort: pageRequest.sort, query });
          return { texts: page.texts, headers: { ...page.headers, ...timing } };
        }),
    },
  };
}
