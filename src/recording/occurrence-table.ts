/** The bytes of a key, which must be a hash: its first bytes decide where it stands. */
const keyBytes = 16;

const wordsOfKey = keyBytes / 4;
const cellsOfSlot = wordsOfKey + 1;
const minSlots = 64;

/** Counts keys in one array of numbers, at 40 to 80 bytes each: a map of strings takes more, and longer. */
export class OccurrenceTable {
  size = 0;
  /** Of each slot: the key in four words, and its count, which is 0 in a free slot. */
  #cells = new Int32Array(minSlots * cellsOfSlot);

  /** The count of a key; 0 if it is not here. */
  count(key: Buffer): number {
    return this.#cells[this.#slotOf(key) + wordsOfKey] ?? 0;
  }

  set(key: Buffer, count: number): void {
    const slot = this.#slotOf(key);
    const isNew = this.#cells[slot + wordsOfKey] === 0;
    for (let word = 0; word < wordsOfKey; word += 1) this.#cells[slot + word] = key.readInt32BE(word * 4);
    this.#cells[slot + wordsOfKey] = count;
    if (!isNew) return;
    this.size += 1;
    // Half of the slots are free, so that a key stands near its place.
    if (this.size * 2 * cellsOfSlot > this.#cells.length) this.#grow();
  }

  /** All keys with their counts, in the order of their bytes. */
  *inOrder(): Generator<{ key: Buffer; count: number }> {
    const cells = this.#cells;
    const slots = new Uint32Array(this.size);
    let found = 0;
    for (let slot = 0; slot < cells.length; slot += cellsOfSlot) {
      if (cells[slot + wordsOfKey] !== 0) slots[found++] = slot;
    }
    slots.sort((one, other) => compareKeys(cells, one, other));
    for (const slot of slots) {
      const key = Buffer.allocUnsafe(keyBytes);
      for (let word = 0; word < wordsOfKey; word += 1) key.writeInt32BE(cells[slot + word] ?? 0, word * 4);
      yield { key, count: cells[slot + wordsOfKey] ?? 0 };
    }
  }

  clear(): void {
    this.#cells.fill(0);
    this.size = 0;
  }

  /** The first cell of the key's slot, or of the free slot where it belongs. */
  #slotOf(key: Buffer): number {
    if (key.length !== keyBytes) throw new RangeError(`a key has ${keyBytes} bytes`);
    const cells = this.#cells;
    const first = key.readInt32BE(0);
    const second = key.readInt32BE(4);
    const third = key.readInt32BE(8);
    const fourth = key.readInt32BE(12);
    for (let slot = this.#home(first); ; slot = slot + cellsOfSlot === cells.length ? 0 : slot + cellsOfSlot) {
      if (cells[slot + wordsOfKey] === 0) return slot;
      const isKey =
        cells[slot] === first && cells[slot + 1] === second && cells[slot + 2] === third && cells[slot + 3] === fourth;
      if (isKey) return slot;
    }
  }

  /** The number of slots is a power of two. */
  #home(first: number): number {
    return (first & (this.#cells.length / cellsOfSlot - 1)) * cellsOfSlot;
  }

  #grow(): void {
    const old = this.#cells;
    const cells = new Int32Array(old.length * 2);
    this.#cells = cells;
    for (let from = 0; from < old.length; from += cellsOfSlot) {
      if (old[from + wordsOfKey] === 0) continue;
      let slot = this.#home(old[from] ?? 0);
      while (cells[slot + wordsOfKey] !== 0) slot = slot + cellsOfSlot === cells.length ? 0 : slot + cellsOfSlot;
      cells.set(old.subarray(from, from + cellsOfSlot), slot);
    }
  }
}

/** In the order of their bytes, which SQLite has too. */
function compareKeys(cells: Int32Array, one: number, other: number): number {
  for (let word = 0; word < wordsOfKey; word += 1) {
    const difference = ((cells[one + word] ?? 0) >>> 0) - ((cells[other + word] ?? 0) >>> 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
