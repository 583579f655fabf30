import { cellAt, cellsOfNode, detailCell, type JsonTape, nextCell, sizeCell } from './tape.ts';
import { decodedString } from './text.ts';

/** In objects of up to this many members, comparing each pair is cheaper than a table. */
const fewMembers = 8;
/** A search of the table that takes more steps makes the object be checked in full. */
const manySteps = 32;

let table = new Int32Array(256);

/** Removes members of a closed object whose keys come again later. Returns their bytes in compact form, with commas. */
export function duplicateBytes(tape: JsonTape, object: number): number {
  return mayRepeatKeys(tape, object) ? dropRepeated(tape, object) : 0;
}

/** Whether two keys of the object have the same hash. */
function mayRepeatKeys(tape: JsonTape, object: number): boolean {
  const cells = tape.cells;
  const first = cellAt(cells, object + detailCell);
  let count = 0;
  for (let key = first; key !== -1; key = cellAt(cells, key + nextCell)) {
    count += 1;
    if (count > fewMembers) return mayRepeatManyKeys(cells, first);
    const hash = cellAt(cells, key + detailCell) >> 2;
    for (let other = first; other !== key; other = cellAt(cells, other + nextCell)) {
      if (cellAt(cells, other + detailCell) >> 2 === hash) return true;
    }
  }
  return false;
}

function mayRepeatManyKeys(cells: Int32Array, first: number): boolean {
  let count = 0;
  for (let key = first; key !== -1; key = cellAt(cells, key + nextCell)) count += 1;
  const size = 1 << (33 - Math.clz32(count));
  if (table.length < size) table = new Int32Array(size);
  else table.fill(0, 0, size);
  for (let key = first; key !== -1; key = cellAt(cells, key + nextCell)) {
    const hash = cellAt(cells, key + detailCell) | 3;
    let slot = (hash >>> 2) & (size - 1);
    let steps = 0;
    while (table[slot] !== 0) {
      steps += 1;
      if (table[slot] === hash || steps > manySteps) return true;
      slot = (slot + 1) & (size - 1);
    }
    table[slot] = hash;
  }
  return false;
}

/** Relinks the object's keys without those that come again later. */
function dropRepeated(tape: JsonTape, object: number): number {
  const cells = tape.cells;
  const last = new Map<string, number>();
  let dropped = 0;
  for (let key = cellAt(cells, object + detailCell); key !== -1; key = cellAt(cells, key + nextCell)) {
    const name = decodedString(tape, key);
    const former = last.get(name);
    if (former !== undefined) {
      if (tape.repeatedKey === -1) tape.repeatedKey = former;
      // The bytes of its key, the colon, its value and the comma after it.
      dropped += cellAt(cells, former + sizeCell) + cellAt(cells, former + cellsOfNode + sizeCell) + 2;
    }
    last.set(name, key);
  }
  let tail = -1;
  for (const key of last.values()) {
    cells[tail === -1 ? object + detailCell : tail + nextCell] = key;
    cells[key + nextCell] = -1;
    tail = key;
  }
  return dropped;
}
