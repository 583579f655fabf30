import type { Writable } from 'node:stream';

const width = 24;
/** Minimum time between two updates, in milliseconds. */
const interval = 100;

/** A line of progress, which each update overwrites. Writes nothing unless the output is a terminal (contract 1). */
export class ProgressLine {
  readonly #stream: Writable & { isTTY?: boolean | undefined };
  #drawn = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(stream: Writable & { isTTY?: boolean | undefined }) {
    this.#stream = stream;
  }

  /** `share` is from 0 to 1; without it, the line has no bar. */
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

  /** Removes the line before other output. */
  clear(): void {
    if (this.#isShown) this.#stream.write('\r\x1b[K');
    this.#isShown = false;
  }
}
