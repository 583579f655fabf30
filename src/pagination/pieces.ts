/** Bytes of text read and sent at once (contract 11). Memory holds them several times. */
export const maxPieceBytes = 4 * 1024 * 1024;

/** Bytes of a piece while an answer is sent: smaller, since a client may take it slowly. */
export const maxStreamedBytes = maxPieceBytes / 4;

/** Bytes of a part of a long text, in the statement `text_parts`: below what the runtime counts as a large string. */
export const maxPartBytes = 96 * 1024;

/**
 * Puts items into pieces whose lengths add up to at most `maxBytes`. The order stays the same. A longer item is a piece
 * of its own.
 *
 * @example
 * piecesOf(['a', 'b', 'c'], [3, 4, 9], 8); // [['a', 'b'], ['c']]
 */
export function piecesOf<Item>(items: readonly Item[], lengths: readonly number[], maxBytes = maxPieceBytes): Item[][] {
  const pieces: Item[][] = [];
  let room = 0;
  for (const [index, item] of items.entries()) {
    const length = lengths[index] ?? 0;
    const last = pieces.at(-1);
    if (last === undefined || length > room) {
      pieces.push([item]);
      room = maxBytes - length;
    } else {
      last.push(item);
      room -= length;
    }
  }
  return pieces;
}
