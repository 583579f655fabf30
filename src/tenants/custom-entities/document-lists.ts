import type { DocumentLists } from '../../pagination/document-lists.ts';
import { mapTexts } from '../../pagination/page-texts.ts';
import { parseDocumentQuery } from '../../query/parse.ts';
import { findDocuments, type ReadContext } from './read-documents.ts';
import { parseFields, selectFields } from './select-fields.ts';

/** Lists of documents; other modules use them too. */
export function createDocumentLists(context: ReadContext): DocumentLists {
  return {
    async page(rows, { q = '', fields }, wanted) {
      const selection = parseFields(fields);
      const { texts, headers } = await findDocuments(context, rows, parseDocumentQuery(q), wanted);
      if (selection === undefined) return { texts, headers };
      return { texts: await mapTexts(texts, (some) => selectFields(some, selection)), headers };
    },
  };
}
