import { readEntries } from '../api/history-reads.ts';
import { queryOfDocument } from '../history/document-queries.ts';
import type { DocumentView } from './document-view.ts';
import type { NumberedEntry } from './touches-of-paths.ts';

/** The changes of a document, the newest first. */
export interface DocumentLife {
  readonly total: number;
  readonly changes: readonly NumberedEntry[];
}

/** Changes that are read. Of a longer life the newest are shown; the slider reaches all. */
const maxChanges = 1_000;
const size = 100;

export async function readLife(
  document: Pick<DocumentView, 'entity' | 'entityId'>,
  signal: AbortSignal,
): Promise<DocumentLife> {
  const q = queryOfDocument(document);
  const first = await readEntries({ q, page: 1, size }, signal);
  const total = first.totalElements;
  const entries = [...first.items];
  for (let page = 2; page <= first.totalPages && entries.length < maxChanges; page += 1) {
    entries.push(...(await readEntries({ q, page, size }, signal)).items);
  }
  return { total, changes: entries.map((entry, index) => ({ number: total - index, entry })) };
}
