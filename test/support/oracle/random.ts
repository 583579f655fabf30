import * as fc from 'fast-check';

/** The seed of all random choices of this run. The run prints it; `ANNALS_SEED` sets it. */
export const seed = Number(process.env.ANNALS_SEED ?? 1);

/** Random numbers that are the same for the same seed, for loads and data that fast-check could not shrink. */
export class Random {
  readonly #numbers: fc.Stream<number>;

  constructor(start: number = seed) {
    const numbers = fc.infiniteStream(fc.nat({ max: 2 ** 27 - 1 }), { noHistory: true });
    const [stream] = fc.sample(numbers, { seed: start, numRuns: 1, unbiased: true });
    if (stream === undefined) throw new Error('fast-check drew no numbers');
    this.#numbers = stream;
  }

  /** The next number: at least 0, below 1. */
  next(): number {
    return (this.#bits(26) * 2 ** 27 + this.#bits(27)) / 2 ** 53;
  }

  #bits(count: number): number {
    return (this.#numbers.next().value ?? 0) >>> (27 - count);
  }

  /** A whole number: at least 0, below the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** One of the items, each as likely as the others. Throws where there is none. */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('there is nothing to pick from');
    return item;
  }

  /** The same items in random order. */
  shuffled<Item>(items: readonly Item[]): Item[] {
    const left = [...items];
    return Array.from(items, () => left.splice(this.below(left.length), 1)).flat();
  }
}
