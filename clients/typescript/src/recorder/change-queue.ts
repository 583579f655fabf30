/** Changes that are not committed yet, in the order in which they were recorded. */
export class ChangeQueue {
  readonly #lines: Uint8Array[] = [];
  readonly #waitingForRoom: (() => void)[] = [];
  readonly #waitingForCommit: { readonly until: number; readonly resolve: () => void }[] = [];
  readonly #limits: { readonly changes: number; readonly bytes: number };
  #bytes = 0;
  #dropped = 0;

  constructor(limits: { readonly changes: number; readonly bytes: number }) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#lines.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get lines(): readonly Uint8Array[] {
    return this.#lines;
  }

  get isFull(): boolean {
    return this.#lines.length > this.#limits.changes || this.#bytes > this.#limits.bytes;
  }

  /** Whether somebody waits until a line is committed. */
  get isAwaited(): boolean {
    return this.#waitingForCommit.length > 0;
  }

  push(line: Uint8Array): void {
    this.#lines.push(line);
    this.#bytes += line.length;
  }

  /** The first lines: at least one, and no more than these limits. */
  first({ changes, bytes }: { readonly changes: number; readonly bytes: number }): Uint8Array[] {
    const taken: Uint8Array[] = [];
    let size = 0;
    for (const line of this.#lines.slice(0, changes)) {
      size += line.length;
      if (taken.length > 0 && size > bytes) break;
      taken.push(line);
    }
    return taken;
  }

  /** Removes the first lines: they are committed. */
  drop(count: number): void {
    for (const { length } of this.#lines.splice(0, count)) this.#bytes -= length;
    this.#dropped += count;
    while ((this.#waitingForCommit[0]?.until ?? Number.POSITIVE_INFINITY) <= this.#dropped) {
      this.#waitingForCommit.shift()?.resolve();
    }
    if (!this.isFull) this.#releaseRoom();
  }

  /** Waits while there is no room. */
  async room(): Promise<void> {
    if (this.isFull) await new Promise<void>((resolve) => this.#waitingForRoom.push(resolve));
  }

  /** Waits until the lines that are here now are committed, whatever comes after them. */
  async committed(): Promise<void> {
    if (this.#lines.length === 0) return;
    const until = this.#dropped + this.#lines.length;
    await new Promise<void>((resolve) => this.#waitingForCommit.push({ until, resolve }));
  }

  /** Ends all waits: nothing will be committed any more. */
  release(): void {
    this.#releaseRoom();
    for (const { resolve } of this.#waitingForCommit.splice(0)) resolve();
  }

  #releaseRoom(): void {
    for (const resolve of this.#waitingForRoom.splice(0)) resolve();
  }
}
