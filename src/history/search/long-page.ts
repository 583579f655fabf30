import { readWithinBudget } from '../../core/concurrency/piece-budget.ts';
import { ofCurrentWork } from '../../core/concurrency/work.ts';
import { invalidField } from '../../core/errors.ts';
import { maxStreamedBytes, piecesOf } from '../../pagination/pieces.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Statements, statementsOf } from '../../postgres/statements.ts';
import { type PageOfEntries, type Place, readEntries, readLengths } from '../entries/entry-store-new.ts';
import type { PageQuery } from './page-query.ts';

// Maximum bytes of text of a page in one piece; memory holds them several times. The second maximum is for a caller that
// takes no pieces. An entry that is longer than a piece is a piece of its own; an entry has at most about 32 MiB.
export const maxPageBytes = 8 * 1024 * 1024;
const maxBytesWithoutPieces = 64 * 1024 * 1024;

/** Bytes that an entry takes in memory besides its texts. */
const bytesOfRow = 1024;

type EntriesOfPage = Pick<PageQuery, 'tenant' | 'inPieces' | 'withContext' | 'withIdentity'>;

/** The entries of a page. Throws validation_violation if they have too much text for a caller that takes no pieces. */
export async function readPlaces(
  pool: Statements,
  transaction: DatabaseTransaction,
  places: readonly Place[],
  { tenant, inPieces, withContext, withIdentity }: EntriesOfPage,
): Promise<Pick<PageOfEntries, 'entries' | 'pieces'>> {
  const statements = statementsOf(transaction);
  if (inPieces !== 'always') {
    const maxBytes = inPieces ? maxPageBytes : maxBytesWithoutPieces;
    const entries = await readEntries(statements, tenant, places, { maxBytes, withContext, withIdentity });
    if (entries !== undefined) return { entries };
  }
  const lengths = await readLengths(statements, tenant, places);
  if (!inPieces) {
    const megabytes = Math.ceil(lengths.reduce((sum, length) => sum + length, 0) / 1024 / 1024);
    throw invalidField('size', `the entries of this page have ${megabytes} MiB of text; ask for a smaller size`);
  }
  const measured = places.map((place, index) => ({ place, bytes: bytesOfRow + (lengths[index] ?? 0) }));
  const pieces = piecesOf(
    measured,
    measured.map(({ bytes }) => bytes),
    maxStreamedBytes,
  );
  const bytesOf = (piece: readonly MeasuredPlace[]) => piece.reduce((sum, { bytes }) => sum + bytes, 0);
  // Entries never change, so a piece needs no snapshot. A slow client holds no connection.
  const read = async (piece: readonly MeasuredPlace[]) => {
    const placesOfPiece = piece.map(({ place }) => place);
    const found = await readEntries(pool, tenant, placesOfPiece, { withContext, withIdentity });
    // Half an answer must not look like a whole one.
    if (found?.length !== piece.length) throw new Error('entries were dropped while their page was being read');
    return found;
  };
  return { entries: [], pieces: ofCurrentWork(readWithinBudget(pieces, bytesOf, read)) };
}

interface MeasuredPlace {
  readonly place: Place;
  readonly bytes: number;
}
