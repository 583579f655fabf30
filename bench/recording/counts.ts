/** How often things happened, by name. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  sorted(): [name: string, count: number][] {
    return [...this.#counts].sort(([one], [other]) => (one < other ? -1 : 1));
  }
}
