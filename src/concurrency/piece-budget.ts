import { keepHeapSmall } from './heap-growth.ts';
import { Semaphore } from './semaphore.ts';
import { currentWork } from './work.ts';

/** Bytes of the pieces of all answers under way in a process; one tenant has at most half (contract 11). */
export const maxBytesUnderWay = 16 * 1024 * 1024;

/**
 * Bytes besides, for the first piece of a tenant that has none under way. So a tenant begins at once, however slowly the
 * clients of some other tenants take their pieces.
 */
export const maxBytesOfFirstPieces = 48 * 1024 * 1024;

const bytesUnderWay = new Semaphore({
  places: maxBytesUnderWay,
  reserve: maxBytesOfFirstPieces,
  name: 'bytes of answers under way',
});

/**
 * Reads the pieces of an answer one after another. Before it reads a piece it waits until memory is free for it, and the
 * piece counts until the next one is wanted: then the client has taken it. A piece that is longer than the tenant's
 * share counts as that share.
 *
 * @example
 * for await (const rows of readWithinBudget(pieces, bytesOfPiece, readRows)) yield textOf(rows);
 */
export async function* readWithinBudget<Place, Piece>(
  places: readonly Place[],
  bytesOf: (place: Place) => number,
  read: (place: Place) => Promise<Piece>,
): AsyncGenerator<Piece> {
  const work = currentWork();
  const letHeapGrow = keepHeapSmall();
  try {
    for (const place of places) {
      const bytes = Math.min(bytesOf(place), maxBytesUnderWay / 2);
      const release = await bytesUnderWay.acquire(work?.tenant ?? '', work?.signal, bytes);
      try {
        yield await read(place);
      } finally {
        release();
      }
    }
  } finally {
    letHeapGrow();
  }
}
