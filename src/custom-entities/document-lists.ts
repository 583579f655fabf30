import { mapTexts } from '../pagination/page-texts.ts';
import type { DocumentLists } from '../ports/document-lists.ts';
import { parseDocumentQuery } from '../query/parse.ts';
import { findDocuments, type ReadContext } from './read-documents.ts';
import { parseFields, selectFields } from './select-fields.ts';

/** Lists of documents; other modules use them too. */
export function createDocumentLists(context: ReadContext): DocumentLists {
  return {
    async page(rows, { q = '', fields }, wanted) {
      const selection = parseFields(fields);
      const { texts, headers } = await findDocuments(context, rows, parseDocumentQuery(q), wanted);
      const select = (text: string) => (selection === undefined ? text : selectFields(text, selection));
      return { texts: mapTexts(texts, select), headers };
    },
  };
}
