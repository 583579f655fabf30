import type { Writable } from 'node:stream';

const width = 24;
/** Drawn at most this often, in milliseconds. */
const interval = 100;

/** One line of progress on a terminal, drawn over itself; on anything that is no terminal it draws nothing (contract 1). */
export class ProgressLine {
  readonly #stream: Writable & { isTTY?: boolean | undefined };
  #drawn = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(stream: Writable & { isTTY?: boolean | undefined }) {
    this.#stream = stream;
  }

  /** `share` is from 0 to 1; without it there is no bar. */
  show(text: string, share: number | undefined): void {
    if (this.#stream.isTTY !== true) return;
    const now = performance.now();
    if (now - this.#drawn < interval) return;
    this.#drawn = now;
    const full = Math.round(Math.min(share ?? 0, 1) * width);
    const bar = share === undefined ? '' : `[${'#'.repeat(full)}${'.'.repeat(width - full)}] `;
    this.#stream.write(`\r\x1b[K${bar}${text}`);
    this.#isShown = true;
  }

  /** Takes the line away, before anything else is written. */
  clear(): void {
    if (this.#isShown) this.#stream.write('\r\x1b[K');
    this.#isShown = false;
  }
}
