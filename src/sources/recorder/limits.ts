/** `longer`: it has more bytes than were reserved for it. `tooLarge`: it exceeds a limit. */
export type RefusalKind = 'longer' | 'tooLarge' | 'unreadable';

/** A body is refused as a whole. The message has no content of it. */
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

/** Changes per request. */
export const maxChanges = 2_000;
/** Bytes of a decompressed body. A single change may be as long as an import line. */
export const maxBytes = 8 * 1024 * 1024;
export const maxBytesOfOne = 16 * 1024 * 1024;
/** JSON values per body. */
export const maxValues = 1_000_000;
/** Nesting depth of a document. */
export const maxLevels = 10_000;
/** Allows for brackets or a line ending around a change of the maximum length. */
export const bodyLimit = maxBytesOfOne + 16;
