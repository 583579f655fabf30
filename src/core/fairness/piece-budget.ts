import { type Release, Semaphore } from './semaphore.ts';
import { currentWork, type Work } from './work.ts';

/** Bytes of the pieces of all answers under way in a process; one tenant has at most half (contract 11). */
export const maxBytesUnderWay = 16 * 1024 * 1024;

/**
 * Bytes besides, for the first piece of a tenant that has none under way. So a tenant begins at once, however slowly the
 * clients of some other tenants take their pieces.
 */
export const maxBytesOfFirstPieces = 48 * 1024 * 1024;

/**
 * Bytes beyond the tenant's half of `maxBytesUnderWay`, of the pieces that are longer than that; one tenant has at most
 * half of them. They are counted apart, so that long pieces never keep another tenant's short ones waiting.
 */
export const maxBytesOfLongPieces = 64 * 1024 * 1024;

/**
 * Milliseconds. One piece is read at a time in a process: to read a megabyte keeps a processor of the database busy, and
 * the event loop. Clients that take pages of hundreds of megabytes would otherwise keep all processors busy, and each
 * statement of another tenant would wait behind them. A piece that takes longer than this makes way for the next one.
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
 * Reads the pieces of an answer one after another. Before it reads a piece it waits until memory is free for it, and for
 * its turn among the tenants. The piece counts until the next one is wanted: then the client has taken it. A piece that is longer than a tenant may ever
 * have (40 MiB) counts as that.
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

/** Reads a piece when it is its turn, or when the piece before it has taken long. */
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

/** Resolves when the bytes are free; rejects with the reason when the work is aborted. */
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
