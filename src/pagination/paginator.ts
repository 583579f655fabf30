import type { QueryExecutorProvider, RawBuilder, SqlBool } from 'kysely';
import type { Sealer } from '../core/sealing.ts';
import { type CursorScope, openCursor, sealCursor } from './cursor.ts';
import { type PageTexts, textsOfPage } from './page-texts.ts';
import { type PagingRequest, readPaging } from './parameters.ts';
import { type Collection, keysetOf, type PagePlace, readPage } from './read-page.ts';
import { parseSort, type Sort } from './sort.ts';

export interface PagedOperation {
  readonly tenant: string;
  /** The operation and the parameters of its path. A cursor of one scope does not open in another one. */
  readonly operation: string;
  /** Everything that narrows the list, as the client sent it. */
  readonly filter: string;
}

/** The validated paging parameters of a request. */
export interface PageRequest {
  readonly scope: CursorScope;
  readonly sort: Sort;
  readonly place: PagePlace;
}

export interface Page {
  readonly texts: PageTexts;
  /** The paging headers of the answer (spec D). */
  readonly headers: Record<string, string>;
}

export interface Paginator {
  /** Checks everything about paging; throws validation_violation. */
  read(request: PagingRequest, operation: PagedOperation): PageRequest;
  /** Reads that page of the rows. If a transaction prepared the filter, the read is in that transaction. */
  fetch(db: QueryExecutorProvider, wanted: PageRequest, collection: Collection): Promise<Page>;
}

/** Offset mode and cursor mode for any list (contract 10). Modules pass their rows and have no paging of their own. */
export function createPaginator({ sealer, now }: { sealer: Sealer; now: () => number }): Paginator {
  return {
    read(request, operation) {
      const paging = readPaging(request);
      const sort = parseSort(request.query.sort);
      const scope = { ...operation, sort: sort.text };
      const size = paging.pageSize;
      if (paging.mode === 'offset') {
        const skip = (paging.pageNumber - 1) * size;
        return { scope, sort, place: { kind: 'page', skip, size, wantsTotal: paging.wantsTotal } };
      }
      const position = openCursor(sealer, scope, paging.cursor, sort.fields.length, now());
      const side = paging.side === 'next' ? 'following' : 'preceding';
      return { scope, sort, place: { kind: 'beside', position, side, size } };
    },

    async fetch(db: QueryExecutorProvider, { scope, sort, place }: PageRequest, collection: Collection): Promise<Page> {
      const { rows, total, begin, end } = await readPage(db, collection, keysetOf(collection, sort), place);
      const headers: Record<string, string> = {};
      if (total !== undefined) headers['X-Total-Count'] = String(total);
      if (end !== undefined) headers['X-Next-Cursor'] = sealCursor(sealer, scope, end, now());
      if (begin !== undefined) headers['X-Prev-Cursor'] = sealCursor(sealer, scope, begin, now());
      return { texts: textsOfPage(rows, collection.readTexts), headers };
    },
  };
}

/** Lists of documents. `q`, `sort` and `fields` work the same in every list (contracts 9 and 10). */
export interface DocumentLists {
  /** A page of rows with `id`, `document` and `fields`, each as JSON text. */
  page(rows: DocumentRows, asked: ListParameters, wanted: PageRequest): Promise<Page>;
}

export interface DocumentRows {
  readonly from: RawBuilder<unknown>;
  readonly where: RawBuilder<SqlBool>;
}

export interface ListParameters {
  readonly q?: string | undefined;
  readonly fields?: string | undefined;
}
