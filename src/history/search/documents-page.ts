import type { Statements } from '../../postgres/statements.ts';
import type { IdRange } from './id-range.ts';
import type { Dictionary } from './names/dictionary.ts';
import { type PageRead, type PageRow, pageOf } from './page-rows.ts';

/** The conditions on documents that the query names one by one; null means any. */
export interface DocumentsPage {
  now: number;
  since: number;
  before: number | null;
  kinds: readonly number[] | null;
  actors: readonly number[] | null;
  /** Hashes of ids: those of the documents, or those of their related documents. */
  documents: readonly string[] | null;
  relatedDocuments: readonly string[] | null;
  relatedEntities: readonly string[] | null;
  /** The ids of documents instead of the hashes. */
  ids: IdRange | null;
  skip: number;
  size: number;
  dictionary: Dictionary;
}

/** Reads a page and its total in one statement. The query names its documents, or their related documents, one by one. */
export async function readDocumentsPage(
  statements: Statements,
  tenant: string,
  page: DocumentsPage,
): Promise<PageRead> {
  const { rows } = await statements.query<PageRow>({
    name: 'documents page',
    text: `select page from change_page_documents(
             $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::text::xid8, $16, $17)`,
    values: [
      tenant,
      page.now,
      page.since,
      page.before,
      page.kinds,
      page.actors,
      page.documents,
      page.relatedDocuments,
      page.relatedEntities,
      page.ids?.from,
      page.ids?.before,
      page.ids?.like,
      page.skip,
      page.size,
      page.dictionary.since,
      page.dictionary.recent,
      page.dictionary.lineage,
    ],
  });
  return pageOf(rows, page.dictionary, 'documents');
}
