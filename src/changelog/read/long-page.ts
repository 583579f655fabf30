import { ofCurrentWork } from '../../concurrency/work.ts';
import type { DatabaseTransaction } from '../../db/database.ts';
import { type Statements, statementsOf } from '../../db/statements.ts';
import { AnnalsError } from '../../errors.ts';
import { piecesOf } from '../../pagination/pieces.ts';
import { type EntryRow, type PageOfEntries, type Place, readEntries, readLengths } from './store.ts';

// Maximum bytes of text of a page in one piece; memory holds them several times. The second maximum is for a caller that
// takes no pieces. An entry that is longer than a piece is a piece of its own; an entry has at most about 32 MiB.
const maxPageBytes = 8 * 1024 * 1024;
const maxBytesWithoutPieces = 64 * 1024 * 1024;

/** The entries of a page. Throws validation_violation if they have too much text for a caller that takes no pieces. */
export async function readPlaces(
  pool: Statements,
  transaction: DatabaseTransaction,
  places: readonly Place[],
  { tenant, inPieces, withContext }: { tenant: string; inPieces: boolean; withContext: boolean },
): Promise<Pick<PageOfEntries, 'entries' | 'pieces'>> {
  const statements = statementsOf(transaction);
  const entries = await readEntries(statements, tenant, places, {
    most: inPieces ? maxPageBytes : maxBytesWithoutPieces,
    withContext,
  });
  if (entries !== undefined) return { entries };
  const lengths = await readLengths(statements, tenant, places);
  if (!inPieces) throw tooLong(lengths.reduce((sum, length) => sum + length, 0));
  return { entries: [], pieces: ofCurrentWork(readPieces(pool, tenant, piecesOf(places, lengths), withContext)) };
}

/** Entries never change, so a piece needs no snapshot. A slow client holds no connection. */
async function* readPieces(
  statements: Statements,
  tenant: string,
  pieces: readonly (readonly Place[])[],
  withContext: boolean,
): AsyncGenerator<EntryRow[]> {
  for (const places of pieces) {
    const entries = await readEntries(statements, tenant, places, { withContext });
    // Half an answer must not look like a whole one.
    if (entries?.length !== places.length) throw new Error('entries were dropped while their page was being read');
    yield entries;
  }
}

function tooLong(bytes: number): AnnalsError {
  const message = `the entries of this page have ${Math.ceil(bytes / 1024 / 1024)} MiB of text; ask for a smaller size`;
  return new AnnalsError('validation_violation', message, { details: [{ field: 'size', message }] });
}
