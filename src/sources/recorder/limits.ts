/**
 * Why a body is refused as a whole. `longer`: it has more bytes than were reserved for it. `tooLarge`: it passes a limit. `unreadable`:
 * no change can be read from it.
 */
export type RefusalKind = 'longer' | 'tooLarge' | 'unreadable';

/** A body is refused as a whole. Its message holds nothing of the body. */
export class Refusal extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.name = 'Refusal';
    this.kind = kind;
  }
}

export function tooDeep(): Refusal {
  return new Refusal('tooLarge', `A document must have at most ${maxLevels} levels.`);
}

/** Changes in a request. */
export const maxChanges = 2_000;
/** Bytes of a body after unpacking. A body with one change alone may have as many as the longest line of an import. */
export const maxBytes = 8 * 1024 * 1024;
export const maxBytesOfOne = 16 * 1024 * 1024;
/** JSON values in a body. */
export const maxValues = 1_000_000;
/** Levels of arrays and objects in a document. */
export const maxLevels = 10_000;
/** Bytes around a change of the maximum length: brackets, a line end. */
export const bodyLimit = maxBytesOfOne + 16;
