import type { FastifyBaseLogger } from 'fastify';
import type { AskedOfList } from '../../pagination/document-lists.ts';
import { isEmptyPage } from '../../pagination/page-texts.ts';
import type { Page, PageWanted } from '../../pagination/paginator.ts';
import { parseDocumentQuery } from '../../query/parse.ts';
import { withFields } from './document-lists.ts';
import { findInstance } from './instance-store.ts';
import { findDocuments, instancesOf, type ReadContext, typesOf } from './read-documents.ts';
import { instanceNotFound, typeNotFound } from './refusals.ts';
import { timingOfSlowPage } from './slow-lists.ts';
import { findType } from './type-store.ts';
import { createInstanceWrites, type InstanceWrites } from './write-instances.ts';
import { createTypeWrites, type TypeWrites, type WriteContext } from './write-types.ts';

/** Custom entity types and their instances (contract 9); documents go in and out as JSON texts. */
export interface CustomEntities {
  readonly types: TypeWrites & {
    find(tenant: string, id: string): Promise<string>;
    list(tenant: string, q: string, wanted: PageWanted): Promise<Page>;
  };
  readonly instances: InstanceWrites & {
    find(tenant: string, type: string, id: string): Promise<string>;
    list(tenant: string, type: string, asked: AskedOfList, wanted: PageWanted): Promise<Page>;
  };
}

export function createCustomEntities(
  context: ReadContext & WriteContext & { logger: Pick<FastifyBaseLogger, 'warn'> },
): CustomEntities {
  const { db } = context;
  return {
    types: {
      ...createTypeWrites(context),
      async find(tenant, id) {
        const found = await findType(db, tenant, id);
        if (found === undefined) throw typeNotFound();
        return found.document;
      },
      list: (tenant, q, wanted) => findDocuments(context, typesOf(tenant), parseDocumentQuery(q), wanted),
    },
    instances: {
      ...createInstanceWrites(context),
      async find(tenant, type, id) {
        const found = await findInstance(db, tenant, { type, id });
        if (found === undefined) throw instanceNotFound();
        return found.document;
      },
      list: (tenant, type, { q = '', fields }, wanted) =>
        withFields(fields, async () => {
          const query = parseDocumentQuery(q);
          const began = performance.now();
          const page = await findDocuments(context, instancesOf(tenant, type), query, wanted);
          const took = performance.now() - began;
          // An empty list may mean that the type does not exist.
          if (isEmptyPage(page.texts) && (await findType(db, tenant, type)) === undefined) throw typeNotFound();
          const timing = await timingOfSlowPage(db, context.logger, { took, sort: wanted.sort, query });
          return { texts: page.texts, headers: { ...page.headers, ...timing } };
        }),
    },
  };
}
