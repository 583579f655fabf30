import { Readable } from 'node:stream';
import { readWithinBudget } from '../core/fairness/piece-budget.ts';
import { ofCurrentWork } from '../core/fairness/work.ts';
import { maxStreamedBytes, piecesOf } from './pieces.ts';

/** A text in parts: a string of a megabyte would stay in memory until a full garbage collection. */
export type TextParts = readonly string[];

/** The texts of a page in its order: all of them, or in pieces that Annals reads while it sends the answer. */
export type PageTexts = readonly string[] | AsyncIterable<readonly TextParts[]>;

/** A row of a page. A long text is undefined here: it is read when it is sent. */
export interface RowOfText {
  readonly id: string;
  readonly bytes: number;
  readonly text: string | undefined;
}

/** The current texts of these rows by id. A deleted row is not in the result. */
export type ReadTexts = (ids: readonly string[]) => Promise<ReadonlyMap<string, TextParts>>;

/**
 * The texts of a page. Each missing piece is read when the client has taken the piece before, so a slow client holds no
 * connection and little memory. If a row has changed since, its current text is sent.
 */
export function textsOfPage(rows: readonly RowOfText[], readTexts: ReadTexts): PageTexts {
  const texts = rows.flatMap(({ text }) => text ?? []);
  if (texts.length === rows.length) return texts;
  return ofCurrentWork(readPieces(rows, readTexts));
}

function readPieces(rows: readonly RowOfText[], readTexts: ReadTexts): AsyncGenerator<readonly TextParts[]> {
  const pieces = piecesOf(
    rows,
    rows.map(({ bytes }) => bytes),
    maxStreamedBytes,
  );
  const bytesOf = (piece: readonly RowOfText[]) => piece.reduce((sum, { bytes }) => sum + bytes, 0);
  return readWithinBudget(pieces, bytesOf, (piece) => readPiece(piece, readTexts));
}

async function readPiece(piece: RowOfText[], readTexts: ReadTexts): Promise<TextParts[]> {
  // Empties the piece, which its page refers to, to free its memory once it is sent.
  const rows = piece.splice(0);
  const missing = rows.filter(({ text }) => text === undefined).map(({ id }) => id);
  const read = missing.length === 0 ? new Map<string, TextParts>() : await readTexts(missing);
  return rows.map(({ id, text }) => {
    const found = text === undefined ? read.get(id) : [text];
    // Half an answer must not look like a whole one: the error cuts the connection.
    if (found === undefined) throw new Error('a row was deleted while its page was being sent');
    return found;
  });
}

/** A row of a statement with `text_parts`; `place` counts the parts of a text from 1. */
export interface RowOfPart {
  readonly id: string;
  readonly place: number;
  readonly part: string;
}

/** The parts of each text, whatever the order of the rows. */
export function partsById(rows: readonly RowOfPart[]): ReadonlyMap<string, TextParts> {
  const texts = new Map<string, string[]>();
  for (const { id, place, part } of rows) texts.getOrInsertComputed(id, () => [])[place - 1] = part;
  return texts;
}

/** Changes a list of texts; the result has as many. */
type ChangeTexts = (texts: readonly string[]) => Promise<readonly string[]>;

export async function mapTexts(texts: PageTexts, change: ChangeTexts): Promise<PageTexts> {
  return isWhole(texts) ? await change(texts) : ofCurrentWork(mapPieces(texts, change));
}

async function* mapPieces(
  pieces: AsyncIterable<readonly TextParts[]>,
  change: ChangeTexts,
): AsyncGenerator<readonly TextParts[]> {
  for await (const piece of pieces) {
    const changed = await change(piece.map((parts) => parts.join('')));
    yield changed.map((text) => [text]);
  }
}

export function isEmptyPage(texts: PageTexts): boolean {
  return isWhole(texts) && texts.length === 0;
}

/** The body of an answer: the JSON array of these JSON texts, as text or as a stream. */
export function arrayBody(texts: PageTexts): string | Readable {
  if (isWhole(texts)) return `[${texts.join()}]`;
  return streamOfTexts(arrayParts(texts));
}

/**
 * The body of an answer that is read while it is sent, never ahead of the client. The texts go to the socket as they
 * are: a Buffer of each would stay in memory until the next garbage collection.
 */
export function streamOfTexts(texts: AsyncIterable<string>): Readable {
  return Readable.from(texts, { objectMode: true, highWaterMark: 0 });
}

async function* arrayParts(pieces: AsyncIterable<readonly TextParts[]>): AsyncGenerator<string> {
  let waiting = '[';
  let separator = '';
  for await (const piece of pieces) {
    for (const parts of piece) {
      waiting += separator;
      separator = ',';
      for (const part of parts) {
        // Short texts go together. A long one goes by itself, so that no copy of it is made.
        if (waiting.length + part.length <= maxJoinedText) {
          waiting += part;
          continue;
        }
        yield waiting;
        waiting = part;
      }
    }
  }
  yield `${waiting}]`;
}

const maxJoinedText = 64 * 1024;

function isWhole(texts: PageTexts): texts is readonly string[] {
  return Array.isArray(texts);
}
