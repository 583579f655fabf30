import { DatabaseSync, type StatementSync } from 'node:sqlite';

/** Keys in memory, at 40 to 80 bytes each, before they are flushed to disk. */
const maximumInMemory = 500_000;

/** A key is 16 bytes. */
const wordsOfKey = 4;
const minSlots = 64;

/**
 * Counts the occurrences of any number of 16-byte hashes exactly, in bounded memory. Beyond the bound, keys move to an
 * unnamed temporary SQLite database, which disappears with the process even if it is killed.
 */
export class Occurrences {
  readonly #maximum: number;
  /**
   * An open-addressing table with a power of two of slots; count 0: free. Several times faster than a map of strings.
   */
  #words = new Int32Array(minSlots * wordsOfKey);
  #counts = new Uint32Array(minSlots);
  #size = 0;
  #database: DatabaseSync | undefined;
  #select: StatementSync | undefined;

  constructor(maximum = maximumInMemory) {
    this.#maximum = maximum;
  }

  /** Counts the key, and returns its previous count. */
  next(key: Buffer): number {
    const slot = this.#slotOf(key.readInt32BE(0), key.readInt32BE(4), key.readInt32BE(8), key.readInt32BE(12));
    const current = this.#counts[slot] ?? 0;
    const before = current > 0 ? current : this.#stored(key);
    this.#counts[slot] = before + 1;
    if (current > 0) return before;
    this.#size += 1;
    if (this.#size >= this.#maximum) this.#store();
    // Half of the slots stay free, so that probes are short.
    else if (this.#size * 2 > this.#counts.length) this.#grow();
    return before;
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  /** The slot of a key, claiming a free one if necessary. */
  #slotOf(first: number, second: number, third: number, fourth: number): number {
    const [words, last] = [this.#words, this.#counts.length - 1];
    for (let slot = first & last; ; slot = (slot + 1) & last) {
      const at = slot * wordsOfKey;
      if (this.#counts[slot] === 0) {
        words[at] = first;
        words[at + 1] = second;
        words[at + 2] = third;
        words[at + 3] = fourth;
        return slot;
      }
      if (words[at] === first && words[at + 1] === second && words[at + 2] === third && words[at + 3] === fourth)
        return slot;
    }
  }

  #grow(): void {
    const [words, counts] = [this.#words, this.#counts];
    this.#words = new Int32Array(words.length * 2);
    this.#counts = new Uint32Array(counts.length * 2);
    for (let slot = 0; slot < counts.length; slot += 1) {
      const count = counts[slot] ?? 0;
      if (count === 0) continue;
      const word = (offset: number) => words[slot * wordsOfKey + offset] ?? 0;
      this.#counts[this.#slotOf(word(0), word(1), word(2), word(3))] = count;
    }
  }

  #stored(key: Buffer): number {
    return Number(this.#select?.get(key)?.count ?? 0);
  }

  #store(): void {
    this.#database ??= this.#open();
    const upsert = this.#database.prepare('insert or replace into occurrence (key, count) values (?, ?)');
    this.#database.exec('begin');
    // In key order, SQLite writes a large tree page after page.
    for (const { key, count } of this.#stand().sort((a, b) => a.key.compare(b.key))) upsert.run(key, count);
    this.#database.exec('commit');
    this.#counts.fill(0);
    this.#size = 0;
  }

  #stand(): { key: Buffer; count: number }[] {
    return Array.from(this.#counts, (count, slot) => ({ count, slot }))
      .filter(({ count }) => count > 0)
      .map(({ count, slot }) => {
        const key = Buffer.allocUnsafe(4 * wordsOfKey);
        for (let word = 0; word < wordsOfKey; word += 1)
          key.writeInt32BE(this.#words[slot * wordsOfKey + word] ?? 0, word * 4);
        return { key, count };
      });
  }

  #open(): DatabaseSync {
    const database = new DatabaseSync('');
    database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -32768');
    database.exec('create table occurrence (key blob primary key, count integer not null) without rowid');
    this.#select = database.prepare('select count from occurrence where key = ?');
    return database;
  }
}
