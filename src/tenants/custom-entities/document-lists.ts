import type { DocumentLists } from '../../pagination/document-lists.ts';
import { mapTexts } from '../../pagination/page-texts.ts';
import type { Page } from '../../pagination/paginator.ts';
import { parseDocumentQuery } from '../../query/parse.ts';
import { findDocuments, type ReadContext } from './read-documents.ts';
import { parseFields, selectFields } from './select-fields.ts';

/** Lists of documents; other modules use them too. */
export function createDocumentLists(context: ReadContext): DocumentLists {
  return {
    page: (rows, { q = '', fields }, wanted) =>
      withFields(fields, () => findDocuments(context, rows, parseDocumentQuery(q), wanted)),
  };
}

/** A page whose documents have the wanted fields alone. */
export async function withFields(fields: string | undefined, find: () => Promise<Page>): Promise<Page> {
  const selection = parseFields(fields);
  const page = await find();
  if (selection === undefined) return page;
  return { ...page, texts: await mapTexts(page.texts, (some) => selectFields(some, selection)) };
}
