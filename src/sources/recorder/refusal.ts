import { maxLevels } from './limits.ts';

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
