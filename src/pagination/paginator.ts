import type { QueryExecutorProvider, RawBuilder, SqlBool } from 'kysely';
import { AnnalsError } from '../core/errors.ts';
import type { Sealer } from '../core/sealing.ts';
import { type CursorScope, openCursor, sealCursor } from './cursor.ts';
import { type PageTexts, textsOfPage } from './page-texts.ts';
import { defaultPageSize, type PagingRequest } from './parameters.ts';
import { type Collection, keysetOf, type PagePlace, readPage } from './read-page.ts';
import { parseSort, type Sort } from './sort.ts';

export interface PagedOperation {
  readonly tenant: string;
  readonly operation: string;
  /** Everything that narrows the list, as the client sent it. */
  readonly filter: string;
}

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

export type Paginator = ReturnType<typeof createPaginator>;

/** Offset mode and cursor mode for any list (contract 10): the paging of all modules. */
export function createPaginator({ sealer, now }: { sealer: Sealer; now: () => number }) {
  return {
    /** Validates the paging parameters; throws validation_violation. */
    read(request: PagingRequest, operation: PagedOperation): PageRequest {
      const { pageNumber = 1, pageSize: size = defaultPageSize, next, prev } = request.query;
      if (next !== undefined && prev !== undefined) throw bothCursors();
      const sort = parseSort(request.query.sort);
      const scope = { ...operation, sort: sort.text };
      // Cursor mode is active when `next` or `prev` is present, empty or not (spec D, rule 1).
      const cursor = next ?? prev;
      if (cursor === undefined) {
        const wantsTotal = String(request.headers['x-total-count']).trim().toLowerCase() === 'true';
        return { scope, sort, place: { kind: 'page', skip: (pageNumber - 1) * size, size, wantsTotal } };
      }
      const position = openCursor(sealer, scope, cursor, sort.fields.length, now());
      const side = next === undefined ? 'preceding' : 'following';
      return { scope, sort, place: { kind: 'beside', position, side, size } };
    },

    /** Reads that page of the rows, in the transaction that prepared the filter, if one did. */
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

function bothCursors(): AnnalsError {
  const message = 'next and prev must not be given together';
  return new AnnalsError('validation_violation', message, {
    details: [
      { field: 'next', message },
      { field: 'prev', message },
    ],
  });
}

/** Lists of documents. `q`, `sort` and `fields` work the same in every list (contracts 9 and 10). */
export interface DocumentLists {
  /** A page of rows with `id`, `document` and `fields`, each as JSON text. */
  page(rows: DocumentRows, parameters: ListParameters, page: PageRequest): Promise<Page>;
}

export interface DocumentRows {
  readonly from: RawBuilder<unknown>;
  readonly where: RawBuilder<SqlBool>;
}

export interface ListParameters {
  readonly q?: string | undefined;
  readonly fields?: string | undefined;
}
