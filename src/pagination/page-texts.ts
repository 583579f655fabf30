import { Readable } from 'node:stream';
import { ofCurrentWork } from '../concurrency/work.ts';
import { maxPieceBytes, piecesOf } from './pieces.ts';

/** The texts of a page in its order: all of them, or in pieces that are read while the answer is sent. */
export type PageTexts = readonly string[] | AsyncIterable<readonly string[]>;

/** A row of a page. Its text is undefined where it is so long that it is read when it is sent. */
export interface RowOfText {
  readonly id: string;
  readonly bytes: number;
  readonly text: string | undefined;
}

/** The texts of these rows as they are now, by id; a row that is gone is not in it. */
export type ReadTexts = (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>;

/**
 * The texts of a page. Those that are not there yet are read piece by piece, each at the moment when the client has taken what
 * came before, so a slow client keeps no connection and little memory. A row that has changed since is sent as it is.
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
  // What has been sent is let go, so the pieces are taken off their list.
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

/** Each text changed, whenever it is read. */
export function mapTexts(texts: PageTexts, change: (text: string) => string): PageTexts {
  return isWhole(texts) ? texts.map(change) : mapPieces(texts, change);
}

async function* mapPieces(
  pieces: AsyncIterable<readonly string[]>,
  change: (text: string) => string,
): AsyncGenerator<readonly string[]> {
  for await (const piece of pieces) yield piece.map(change);
}

/** Whether the page is known to have no row. */
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
