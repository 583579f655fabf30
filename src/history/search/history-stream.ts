import type { Readable } from 'node:stream';
import { streamOfTexts } from '../../pagination/page-texts.ts';
import type { EntryRow, PageOfEntries } from '../entries/entry-store-new.ts';
import { historyText } from '../entries/entry-text.ts';

/** The body of the answer: a text, or a stream if the page came in pieces. */
export function historyBody(found: PageOfEntries, asked: { page: number; size: number }): string | Readable {
  if (found.pieces === undefined) return historyText(found, asked);
  return streamOfTexts(historyParts(found, found.pieces, asked));
}

async function* historyParts(
  { total }: PageOfEntries,
  pieces: AsyncIterable<EntryRow[]>,
  asked: { page: number; size: number },
): AsyncGenerator<string> {
  const textOf = (entries: EntryRow[]) => historyText({ total, entries }, asked);
  // An answer without entries shows the text before and after the entries.
  const [head = '', tail = ''] = textOf([]).split(/(?<=\[)(?=\])/);
  let before = head;
  for await (const entries of pieces) {
    const text = textOf(entries);
    yield before + text.slice(head.length, text.length - tail.length);
    before = ',';
  }
  yield tail;
}
