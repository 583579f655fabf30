import { Readable } from 'node:stream';
import { ofCurrentWork } from '../concurrency/work.ts';
import { maxPieceBytes, piecesOf } from './pieces.ts';

/** The texts of a page in its order: all of them, or in pieces that Annals reads while it sends the answer. */
export type PageTexts = readonly string[] | AsyncIterable<readonly string[]>;

/** A row of a page. A long text is undefined here: Annals reads it when it sends it. */
export interface RowOfText {
  readonly id: string;
  readonly bytes: number;
  readonly text: string | undefined;
}

/** The current texts of these rows by id. A deleted row is not in the result. */
export type ReadTexts = (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>;

/**
 * The texts of a page. Annals reads each missing piece when the client has taken the piece before. So a slow client holds
 * no connection and little memory. If a row has changed since, Annals sends its current text.
 */
export function textsOfPage(rows: readonly RowOfText[], readTexts: ReadTexts): PageTexts {
  const texts = rows.flatMap(({ text }) => text ?? []);
  if (texts.length === rows.length) return texts;
  return ofCurrentWork(readPieces(rows, readTexts));
}

async function* readPieces(rows: readonly RowOfText[], readTexts: ReadTexts): AsyncGenerator<readonly string[]> {
  const pieces = piecesOf(
    rows,
    rows.map(({ bytes }) => bytes),
    maxPieceBytes / 2,
  );
  // Removes each piece from the list after it is sent, to free its memory.
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    const missing = piece.filter(({ text }) => text === undefined).map(({ id }) => id);
    const read = missing.length === 0 ? new Map<string, string>() : await readTexts(missing);
    yield piece.map(({ id, text }) => {
      const found = text ?? read.get(id);
      // Half an answer must not look like a whole one: the error cuts the connection.
      if (found === undefined) throw new Error('a row was deleted while its page was being sent');
      return found;
    });
  }
}

/** Changes a list of texts; the result has as many. */
export type ChangeTexts = (texts: readonly string[]) => Promise<readonly string[]>;

/** Applies a function to the texts: to all of them, or to each piece when it is read. */
export async function mapTexts(texts: PageTexts, change: ChangeTexts): Promise<PageTexts> {
  return isWhole(texts) ? await change(texts) : ofCurrentWork(mapPieces(texts, change));
}

async function* mapPieces(
  pieces: AsyncIterable<readonly string[]>,
  change: ChangeTexts,
): AsyncGenerator<readonly string[]> {
  for await (const piece of pieces) yield await change(piece);
}

/** Whether the page is known to have no rows. */
export function isEmptyPage(texts: PageTexts): boolean {
  return isWhole(texts) && texts.length === 0;
}

/** The body of an answer: the JSON array of these JSON texts, as text or as a stream. */
export function arrayBody(texts: PageTexts): string | Readable {
  if (isWhole(texts)) return `[${texts.join()}]`;
  return Readable.from(arrayParts(texts), { objectMode: false, highWaterMark: 1 });
}

async function* arrayParts(pieces: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  let before = '[';
  for await (const piece of pieces) {
    yield before + piece.join();
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}

function isWhole(texts: PageTexts): texts is readonly string[] {
  return Array.isArray(texts);
}
