import { Readable } from 'node:stream';
import type { EntryRow, PageOfEntries } from './store.ts';
import { historyText } from './view.ts';

/** The body of the answer: its text, or a stream of it where the page came in pieces. */
export function historyBody(found: PageOfEntries, asked: { page: number; size: number }): string | Readable {
  if (found.pieces === undefined) return historyText(found, asked);
  return Readable.from(historyParts(found, found.pieces, asked), { objectMode: false, encoding: 'utf8' });
}

async function* historyParts(
  { total }: PageOfEntries,
  pieces: AsyncIterable<EntryRow[]>,
  asked: { page: number; size: number },
): AsyncGenerator<string> {
  const textOf = (entries: EntryRow[]) => historyText({ total, entries }, asked);
  // What stands before and after the entries is what an answer without any has.
  const [head = '', tail = ''] = textOf([]).split(/(?<=\[)(?=\])/);
  let before = head;
  for await (const entries of pieces) {
    const text = textOf(entries);
    yield before;
    yield text.slice(head.length, text.length - tail.length);
    before = ',';
  }
  yield tail;
}
