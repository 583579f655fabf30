import type { RawBuilder, SqlBool } from 'kysely';
import type { Page, PageWanted } from '../pagination/paginator.ts';
import { parseDocumentQuery } from '../query/parse.ts';
import { findDocuments, type ReadContext } from './read-documents.ts';
import { parseFields, selectFields } from './select-fields.ts';

/** Lists of documents for other rooms: `q`, `sort` and `fields` are the same wherever something is listed. */
export interface DocumentLists {
  /** A page of rows with `id`, `document` and `fields`, each as JSON text. */
  page(
    rows: { readonly from: RawBuilder<unknown>; readonly where: RawBuilder<SqlBool> },
    asked: { readonly q?: string | undefined; readonly fields?: string | undefined },
    wanted: PageWanted,
  ): Promise<Page<string>>;
}

export function createDocumentLists(context: ReadContext): DocumentLists {
  return {
    async page(rows, { q = '', fields }, wanted) {
      const selection = parseFields(fields);
      const { items, headers } = await findDocuments(context, rows, parseDocumentQuery(q), wanted);
      return { items: selection === undefined ? items : items.map((item) => selectFields(item, selection)), headers };
    },
  };
}
