import type { RawBuilder, SqlBool } from 'kysely';
import type { Page, PageWanted } from './paginator.ts';

/** Lists of documents. `q`, `sort` and `fields` work the same in every list (contracts 9 and 10). */
export interface DocumentLists {
  /** A page of rows with `id`, `document` and `fields`, each as JSON text. */
  page(rows: DocumentRows, asked: AskedOfList, wanted: PageWanted): Promise<Page>;
}

export interface DocumentRows {
  readonly from: RawBuilder<unknown>;
  readonly where: RawBuilder<SqlBool>;
}

export interface AskedOfList {
  readonly q?: string | undefined;
  readonly fields?: string | undefined;
}
