/**
 * A small generator of pseudo-random numbers. The same seed gives the same numbers, so the demo is the same shop on
 * every machine and at every start, and recording it again finds nothing new. Not for secrets.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** The next number, at least 0 and less than 1. */
  next(): number {
    // A counter that steps by an odd number visits all 2^32 states; the multiplications spread its bits.
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let bits = this.#state;
    bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of the choices, which must not be empty. */
  pick<T>(choices: readonly T[]): T {
    const choice = choices[Math.floor(this.next() * choices.length)];
    if (choice === undefined) throw new RangeError('nothing to pick from');
    return choice;
  }

  /** Up to `count` different choices. */
  sample<T>(choices: readonly T[], count: number): T[] {
    const rest = [...choices];
    const taken: T[] = [];
    while (taken.length < count && rest.length > 0) {
      taken.push(...rest.splice(Math.floor(this.next() * rest.length), 1));
    }
    return taken;
  }

  /** The index of one weight, each as likely as it is heavy; weights of 0 are never taken. */
  weighted(weights: readonly number[]): number {
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    let point = this.next() * total;
    for (const [index, weight] of weights.entries()) {
      point -= weight;
      if (point < 0 && weight > 0) return index;
    }
    return weights.findLastIndex((weight) => weight > 0);
  }
}
