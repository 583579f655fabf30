/** Maximum bytes that are cached for all dictionaries together. */
const maxBytes = 64 * 1024 * 1024;

/** The dictionaries with cached matches, the least recently used one first. */
const keepers = new Set<Matches>();
let kept = 0;

/**
 * Which names of a dictionary a pattern matches, one byte for each name. Annals caches the result while there is memory
 * for it.
 */
export class Matches {
  readonly #members = new Map<string, { members: Promise<Uint8Array>; bytes: number }>();

  get(pattern: string): Promise<Uint8Array> | undefined {
    const found = this.#members.get(pattern);
    if (found !== undefined) this.#touch();
    return found?.members;
  }

  /** The number of names that the result covers. */
  set(pattern: string, members: Promise<Uint8Array>, names: number): void {
    this.delete(pattern);
    const bytes = names + 2 * pattern.length + 200;
    this.#members.set(pattern, { members, bytes });
    kept += bytes;
    this.#touch();
    for (const keeper of keepers) {
      if (kept <= maxBytes) return;
      if (keeper === this) this.#forgetAllBut(pattern);
      else keeper.#forgetAllBut(undefined);
    }
  }

  delete(pattern: string): void {
    const found = this.#members.get(pattern);
    if (found === undefined) return;
    this.#members.delete(pattern);
    kept -= found.bytes;
    if (this.#members.size === 0) keepers.delete(this);
  }

  #touch(): void {
    keepers.delete(this);
    keepers.add(this);
  }

  #forgetAllBut(spared: string | undefined): void {
    for (const pattern of this.#members.keys()) if (pattern !== spared) this.delete(pattern);
  }
}
