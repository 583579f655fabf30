import { type Release, Semaphore } from './semaphore.ts';
import { currentWork, type Work } from './work.ts';

/** Bytes of pieces of all answers in progress in a process; one tenant has at most half (contract 11). */
export const maxBytesUnderWay = 16 * 1024 * 1024;

/**
 * Additional bytes for the first piece of a tenant, so that it starts at once even if other tenants' clients are slow.
 */
export const maxBytesOfFirstPieces = 48 * 1024 * 1024;

/**
 * Bytes of pieces beyond the tenant's half of `maxBytesUnderWay`; one tenant has at most half. Counted separately, so
 * that long pieces never block another tenant's short ones.
 */
export const maxBytesOfLongPieces = 64 * 1024 * 1024;

/**
 * Milliseconds after which the next piece is read too. A process reads one piece at a time, since reading a megabyte
 * occupies a processor of the database and the event loop: clients with pages of hundreds of megabytes would otherwise
 * occupy all processors, and delay every statement of other tenants.
 */
export const maxTurnOfPiece = 250;

const readsOfPieces = new Semaphore({ places: 1, name: 'reads of pieces of answers' });

const bytesOfLongPieces = new Semaphore({ places: maxBytesOfLongPieces, name: 'bytes of long pieces of answers' });

const bytesUnderWay = new Semaphore({
  places: maxBytesUnderWay,
  reserve: maxBytesOfFirstPieces,
  name: 'bytes of answers under way',
});

/**
 * Reads the pieces of an answer one after another. Each waits for free memory and for its tenant's turn, and occupies
 * memory until the consumer requests the next one. Pieces beyond a tenant's maximum (40 MiB) count as that.
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
  for (const place of places) {
    const release = await acquireBytes(bytesOf(place), work);
    try {
      yield await readInTurn(work, () => read(place));
    } finally {
      release();
    }
  }
}

/** Reads a piece in turn; a read that takes long lets the next one begin. */
async function readInTurn<Piece>(work: Work | undefined, read: () => Promise<Piece>): Promise<Piece> {
  const release = await readsOfPieces.acquire(work?.tenant ?? '', work?.signal);
  const timer = setTimeout(release, maxTurnOfPiece);
  try {
    return await read();
  } finally {
    clearTimeout(timer);
    release();
  }
}

/** Resolves when the bytes are free. Rejects with the reason if the work is aborted. */
async function acquireBytes(bytes: number, work: Work | undefined): Promise<Release> {
  const tenant = work?.tenant ?? '';
  const short = Math.min(bytes, maxBytesUnderWay / 2);
  const rest = Math.min(bytes - short, maxBytesOfLongPieces / 2);
  const releaseRest = rest === 0 ? () => {} : await bytesOfLongPieces.acquire(tenant, work?.signal, rest);
  try {
    const releaseShort = await bytesUnderWay.acquire(tenant, work?.signal, short);
    return () => {
      releaseShort();
      releaseRest();
    };
  } catch (error) {
    releaseRest();
    throw error;
  }
}
