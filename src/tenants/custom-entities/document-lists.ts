import { mapTexts } from '../../pagination/page-texts.ts';
import type { DocumentLists, Page } from '../../pagination/paginator.ts';
import { parseDocumentQuery } from '../../query/parse.ts';
import { findDocuments, type ReadContext } from './read-documents.ts';
import { parseFields, selectFields } from './select-fields.ts';

/** Lists of documents, also for other modules. */
export function createDocumentLists(context: ReadContext): DocumentLists {
  return {
    page: (rows, { q = '', fields }, page) =>
      withFields(fields, () => findDocuments(context, rows, parseDocumentQuery(q), page)),
  };
}

/** A page whose documents have only the requested fields. */
export async function withFields(fields: string | undefined, find: () => Promise<Page>): Promise<Page> {
  const selection = parseFields(fields);
  const page = await find();
  if (selection === undefined) return page;
  return { ...page, texts: await mapTexts(page.texts, (texts) => selectFields(texts, selection)) };
}
