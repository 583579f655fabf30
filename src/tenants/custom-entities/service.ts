import type { FastifyBaseLogger } from 'fastify';
import { isEmptyPage } from '../../pagination/page-texts.ts';
import type { ListParameters, Page, PageRequest } from '../../pagination/paginator.ts';
import { parseDocumentQuery } from '../../query/parse.ts';
import { withFields } from './document-lists.ts';
import { findDocuments, instancesOf, type ReadContext, typesOf } from './read-documents.ts';
import { typeNotFound } from './refusals.ts';
import { timingOfSlowPage } from './slow-lists.ts';
import { typeTable } from './type-store.ts';
import { createOwnInstances, type OwnInstances } from './write-instances.ts';
import { createOwnTypes, type OwnTypes, type WriteContext } from './write-types.ts';

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
