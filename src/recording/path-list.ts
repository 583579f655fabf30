import {
  cellAt,
  detailCell,
  endCell,
  hasDot,
  isEscaped,
  type JsonTape,
  sizeCell,
  startCell,
} from '../core/json/tape.ts';
import { copyBytes, decodedString, writeCompact } from '../core/json/text.ts';
import { isPosition } from './marks.ts';

/** What the JSON text of one change's `paths` may have, in bytes: a deep document with long keys could fill a disk. */
export const maximumPathsBytes = 128 * 1024 * 1024;

/** The paths of a change would take more bytes than they may have. Its message holds nothing of the document. */
export class PathsTooLargeError extends Error {
  constructor(maxBytes = maximumPathsBytes) {
    super(`its paths would take more than ${maxBytes / 1024 / 1024} MiB`);
    this.name = 'PathsTooLargeError';
  }
}

/** Where the key of a segment stands. */
export const keyOfBefore = 0;
export const keyOfAfter = 1;
/** The segment is a position in an array. */
export const arrayIndex = 2;

/** The segment of the document itself: its path is empty, and no dot follows it. */
export const rootSegment = 0;
const cellsOfSegment = 4;

const openMember = Buffer.from('":{');
const beforeText = Buffer.from('"before":');
const afterText = Buffer.from('"after":');

/**
 * The members of `paths` as they are found, first as nodes and sizes, so that nothing is written that an array as
 * one value then makes needless. Paths are chains of segments, so that a deep document costs no long strings.
 */
export class PathList {
  /** How many members there are. */
  count = 0;
  /** The bytes of JSON they add to `paths`, without the commas between them. */
  bytes = 0;

  readonly #before: JsonTape;
  readonly #after: JsonTape;
  /** The containers that this change emptied, and those that it filled, which were there before. */
  #kept: number[] = [];
  #wasEmpty: number[] = [];
  readonly #members: number[] = [];
  readonly #segments: number[] = [-1, -1, arrayIndex, 0];
  readonly #encodedKeys = new Map<number, Buffer>();

  constructor(before: JsonTape, after: JsonTape) {
    this.#before = before;
    this.#after = after;
  }

  /** Makes the segment of a key (its node) or of an array position below `parent`. */
  addSegment(parent: number, key: number, side: number): number {
    const segment = this.#segments.length;
    const own = side === arrayIndex ? String(key).length : this.#keyLength(segment, key, side);
    const length = parent === rootSegment ? own : (this.#segments[parent + 3] ?? -1) + 1 + own;
    this.#segments.push(parent, key, side, length);
    return segment;
  }

  /** Adds a member. `before` and `after` are nodes, -1 where there is no value. */
  addMember(segment: number, before: number, after: number): void {
    this.#members.push(segment, before, after);
    this.count += 1;
    this.bytes += this.memberBytes(segment, before, after);
  }

  /**
   * What a member adds to `paths`, in bytes of UTF-8: the key with its quotes and escapes, the colon, and the object
   * with `before`, `after` or both, their values in compact form. The comma to the next member is not counted.
   */
  memberBytes(segment: number, before: number, after: number): number {
    let bytes = 2 + (this.#segments[segment + 3] ?? -1) + 1 + 2;
    if (before !== -1) bytes += beforeText.length + cellAt(this.#before.cells, before + sizeCell);
    if (after !== -1) bytes += afterText.length + cellAt(this.#after.cells, after + sizeCell);
    return before !== -1 && after !== -1 ? bytes + 1 : bytes;
  }

  /** Takes back the members after the first `count`, and all segments made after `segment`. */
  cutBack(count: number, bytes: number, segment: number): void {
    this.#members.length = count * 3;
    this.#segments.length = segment + cellsOfSegment;
    if (this.#kept.length > 0) this.#kept = this.#kept.filter((container) => container <= segment);
    if (this.#wasEmpty.length > 0) this.#wasEmpty = this.#wasEmpty.filter((container) => container <= segment);
    this.count = count;
    this.bytes = bytes;
  }

  /** Notes a container that is there on both sides and has no children any more. */
  addKept(segment: number): void {
    this.#kept.push(segment);
  }

  /** Notes a container that is there on both sides and had no children before. */
  addWasEmpty(segment: number): void {
    this.#wasEmpty.push(segment);
  }

  /** What the members do not tell about the documents (marks.ts). Call it after `toText`. */
  toMarks(isWhole: boolean): string | undefined {
    const members: string[] = [];
    if (isWhole) members.push('"whole":true');
    const [only = rootSegment] = this.#members;
    // The path of the document and that of its key "" are the same text.
    if (only !== rootSegment && this.#segments[only + 3] === 0) members.push('"root":true');
    for (const [name, containers] of [
      ['kept', this.#kept],
      ['wasEmpty', this.#wasEmpty],
    ] as const) {
      if (containers.length > 0)
        members.push(`"${name}":[${containers.map((one) => this.#quotedPath(one)).join(',')}]`);
    }
    const objects = this.#hasKeyLikeIndex() ? this.#objectsLikeArrays() : [];
    if (objects.length > 0) members.push(`"objects":[${objects.join(',')}]`);
    return members.length === 0 ? undefined : `{${members.join(',')}}`;
  }

  /** The JSON text of `paths`. Throws `PathsTooLargeError`. */
  toText(maxBytes = maximumPathsBytes): string {
    if (this.count === 0) return '{}';
    const total = this.bytes + this.count + 1;
    if (total > maxBytes) throw new PathsTooLargeError(maxBytes);
    const target = total <= scratch.length ? scratch : Buffer.allocUnsafe(total);
    let position = 0;
    for (let member = 0; member < this.#members.length; member += 3) {
      target[position] = member === 0 ? 0x7b : 0x2c;
      target[position + 1] = 0x22;
      position = this.#writePath(this.#members[member] ?? -1, target, position + 2);
      position = copyBytes(openMember, 0, openMember.length, target, position);
      const before = this.#members[member + 1] ?? -1;
      const after = this.#members[member + 2] ?? -1;
      if (before !== -1) {
        position = copyBytes(beforeText, 0, beforeText.length, target, position);
        position = writeCompact(this.#before, before, target, position);
      }
      if (after !== -1) {
        if (before !== -1) {
          target[position] = 0x2c;
          position += 1;
        }
        position = copyBytes(afterText, 0, afterText.length, target, position);
        position = writeCompact(this.#after, after, target, position);
      }
      target[position] = 0x7d;
      position += 1;
    }
    target[position] = 0x7d;
    return target.toString('utf8', 0, position + 1);
  }

  #quotedPath(segment: number): string {
    const path = Buffer.allocUnsafe(Math.max(0, this.#segments[segment + 3] ?? 0));
    this.#writePath(segment, path, 0);
    return `"${path.toString('utf8')}"`;
  }

  /** Almost no document has such a key, so this looks at one byte of each key. */
  #hasKeyLikeIndex(): boolean {
    for (let segment = cellsOfSegment; segment < this.#segments.length; segment += cellsOfSegment) {
      const side = this.#segments[segment + 2];
      if (side === arrayIndex) continue;
      const tape = side === keyOfBefore ? this.#before : this.#after;
      const key = this.#segments[segment + 1] ?? -1;
      const byte = tape.bytes[cellAt(tape.cells, key + startCell) + 1] ?? 0;
      if ((byte >= 0x30 && byte <= 0x39) || byte === 0x5c) return true;
    }
    return false;
  }

  /**
   * The objects whose keys in `paths` could all be positions in an array. Each is two values: the position in this
   * list, from 1, of an object around it (0: the document), and the path from that object to it. So a deep document
   * does not repeat its long paths.
   */
  #objectsLikeArrays(): (number | string)[] {
    const onlyIndexes = new Map<number, boolean>();
    for (let segment = cellsOfSegment; segment < this.#segments.length; segment += cellsOfSegment) {
      const parent = this.#segments[segment] ?? -1;
      const side = this.#segments[segment + 2];
      if (side === arrayIndex || parent === rootSegment || onlyIndexes.get(parent) === false) continue;
      onlyIndexes.set(parent, isPosition(this.#keyText(segment)));
    }
    const coded: (number | string)[] = [];
    const placeOf = new Map<number, number>([[rootSegment, 0]]);
    for (const [container, hasOnlyIndexes] of onlyIndexes) {
      if (!hasOnlyIndexes) continue;
      const keys: string[] = [];
      let above = container;
      while (!placeOf.has(above)) {
        keys.push(this.#keyText(above).replace(/[.\\]/g, '\\$&'));
        above = this.#segments[above] ?? rootSegment;
      }
      coded.push(placeOf.get(above) ?? 0, JSON.stringify(keys.reverse().join('.')));
      placeOf.set(container, placeOf.size);
    }
    return coded;
  }

  #keyText(segment: number): string {
    const key = this.#segments[segment + 1] ?? -1;
    const side = this.#segments[segment + 2];
    return side === arrayIndex ? String(key) : decodedString(side === keyOfBefore ? this.#before : this.#after, key);
  }

  /** Writes a path as it stands between quotes, from its last segment to its first. */
  #writePath(last: number, target: Buffer, at: number): number {
    const end = at + (this.#segments[last + 3] ?? -1);
    let segment = last;
    let segmentEnd = end;
    while (segment !== rootSegment) {
      const parent = this.#segments[segment] ?? -1;
      const start = parent === rootSegment ? at : at + (this.#segments[parent + 3] ?? -1) + 1;
      const key = this.#segments[segment + 1] ?? -1;
      const side = this.#segments[segment + 2] ?? -1;
      if (side === arrayIndex) target.write(String(key), start, 'latin1');
      else this.#writeKey(segment, key, side, target, start, segmentEnd);
      if (parent !== rootSegment) target[start - 1] = 0x2e;
      segmentEnd = start - 1;
      segment = parent;
    }
    return end;
  }

  #writeKey(segment: number, key: number, side: number, target: Buffer, start: number, end: number): void {
    const encoded = this.#encodedKeys.get(segment);
    if (encoded !== undefined) encoded.copy(target, start);
    else {
      const tape = side === keyOfBefore ? this.#before : this.#after;
      const source = cellAt(tape.cells, key + startCell) + 1;
      copyBytes(tape.bytes, source, source + end - start, target, start);
    }
  }

  /**
   * The length of a key as a part of a path. A key that must be written in another form than in its source is kept in
   * that form.
   */
  #keyLength(segment: number, key: number, side: number): number {
    const tape = side === keyOfBefore ? this.#before : this.#after;
    if ((cellAt(tape.cells, key + detailCell) & (isEscaped | hasDot)) === 0) {
      if (this.#encodedKeys.size > 0) this.#encodedKeys.delete(segment);
      return cellAt(tape.cells, key + endCell) - cellAt(tape.cells, key + startCell) - 2;
    }
    const inPath = decodedString(tape, key).replace(/[.\\]/g, '\\$&');
    const encoded = Buffer.from(JSON.stringify(inPath).slice(1, -1));
    this.#encodedKeys.set(segment, encoded);
    return encoded.length;
  }
}

/** The buffer in which texts of up to this size are written, one at a time. */
const scratch = Buffer.allocUnsafe(1024 * 1024);
