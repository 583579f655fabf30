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

/** Maximum bytes of a change's `paths`: a deep document with long keys could fill a disk. */
export const maximumPathsBytes = 128 * 1024 * 1024;

/** The `paths` of a change exceed their limit. The message contains nothing of the document. */
export class PathsTooLargeError extends Error {
  constructor(maxBytes = maximumPathsBytes) {
    super(`its paths would take more than ${maxBytes / 1024 / 1024} MiB`);
    this.name = 'PathsTooLargeError';
  }
}

/** The location of a segment's key. */
export const keyOfBefore = 0;
export const keyOfAfter = 1;
/** The segment is a position in an array. */
export const arrayIndex = 2;

/** The segment of the document itself, with an empty path and no dot after it. */
export const rootSegment = 0;
const cellsOfSegment = 4;

const openMember = Buffer.from('":{');
const beforeText = Buffer.from('"before":');
const afterText = Buffer.from('"after":');

/**
 * Collects the members of `paths` as nodes and sizes before writing any text, since an array may replace its elements.
 * Paths are chains of segments, so that a deep document needs no long strings.
 */
export class PathList {
  /** The number of members. */
  count = 0;
  /** The bytes of JSON of all members, without the commas between them. */
  bytes = 0;

  readonly #before: JsonTape;
  readonly #after: JsonTape;
  /** Existing containers that this change emptied, and those that it filled. */
  #keptContainers: number[] = [];
  #wasEmpty: number[] = [];
  readonly #members: number[] = [];
  readonly #segments: number[] = [-1, -1, arrayIndex, 0];
  readonly #encodedKeys = new Map<number, Buffer>();

  constructor(before: JsonTape, after: JsonTape) {
    this.#before = before;
    this.#after = after;
  }

  /** Adds the segment of a key (its node) or of an array position below `parent`. */
  addSegment(parent: number, key: number, side: number): number {
    const segment = this.#segments.length;
    const own = side === arrayIndex ? String(key).length : this.#keyLength(segment, key, side);
    const length = parent === rootSegment ? own : (this.#segments[parent + 3] ?? -1) + 1 + own;
    this.#segments.push(parent, key, side, length);
    return segment;
  }

  /** Adds a member. `before` and `after` are nodes, or -1 without a value. */
  addMember(segment: number, before: number, after: number): void {
    this.#members.push(segment, before, after);
    this.count += 1;
    this.bytes += this.memberBytes(segment, before, after);
  }

  /** The UTF-8 bytes of a member: quoted key, colon, and the compact object; without the comma to the next member. */
  memberBytes(segment: number, before: number, after: number): number {
    let bytes = 2 + (this.#segments[segment + 3] ?? -1) + 1 + 2;
    if (before !== -1) bytes += beforeText.length + cellAt(this.#before.cells, before + sizeCell);
    if (after !== -1) bytes += afterText.length + cellAt(this.#after.cells, after + sizeCell);
    return before !== -1 && after !== -1 ? bytes + 1 : bytes;
  }

  /** Removes the members after the first `count`, and all segments after `segment`. */
  cutBack(count: number, bytes: number, segment: number): void {
    this.#members.length = count * 3;
    this.#segments.length = segment + cellsOfSegment;
    if (this.#keptContainers.length > 0)
      this.#keptContainers = this.#keptContainers.filter((container) => container <= segment);
    if (this.#wasEmpty.length > 0) this.#wasEmpty = this.#wasEmpty.filter((container) => container <= segment);
    this.count = count;
    this.bytes = bytes;
  }

  /** Adds a container that exists on both sides and lost all children. */
  addKept(segment: number): void {
    this.#keptContainers.push(segment);
  }

  /** Adds a container that exists on both sides and had no children before. */
  addWasEmpty(segment: number): void {
    this.#wasEmpty.push(segment);
  }

  /** The marks of the change (`Marks`). Call it after `toText`. */
  toMarks(isWhole: boolean): string | undefined {
    const members: string[] = [];
    if (isWhole) members.push('"whole":true');
    const [only = rootSegment] = this.#members;
    // The path of the document and that of its key "" are the same text.
    if (only !== rootSegment && this.#segments[only + 3] === 0) members.push('"root":true');
    for (const [name, containers] of [
      ['kept', this.#keptContainers],
      ['wasEmpty', this.#wasEmpty],
    ] as const) {
      if (containers.length > 0)
        members.push(`"${name}":[${containers.map((container) => this.#quotedPath(container)).join(',')}]`);
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

  /** Checks one byte of each key, since almost no document has such a key. */
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
   * Objects whose keys in `paths` could all be array positions. Each is two values: the 1-based index in this list of
   * an enclosing object (0: the document), and the path from there, so that long paths are not repeated.
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

  /** Writes a path as quoted text, from its last segment to its first. */
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

  /** The length of a key within a path. Caches a key whose form differs from its source. */
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

/** Reused for texts up to this size, one at a time. */
const scratch = Buffer.allocUnsafe(1024 * 1024);

/**
 * Facts about the documents of a change that `paths` does not contain, stored with the entry as JSON text but never
 * shown. `rebuild/` restores the documents from entries and marks.
 *
 * Most entries need no marks, by these defaults: a container whose keys in `paths` are all positions is an array; one
 * that loses all children is removed; one that gets its first children is new; the path `""` is the document.
 */
export interface Marks {
  /** The update had one side only, so its paths hold a whole document; without paths it had neither. */
  readonly whole?: true;
  /** The path `""` is a key of the document. */
  readonly root?: true;
  /** Paths of containers that remain although they lost all children. */
  readonly kept?: readonly string[];
  /** Paths of containers that existed before they got their first children. */
  readonly wasEmpty?: readonly string[];
  /**
   * Objects whose keys in `paths` all look like positions. Each is two values: the 1-based index in this list of an
   * enclosing object (0: the document), and its path from there.
   */
  readonly objects?: readonly (number | string)[];
}

/** Whether a key could be a position in an array. */
export function isPosition(key: string): boolean {
  return /^(?:0|[1-9]\d{0,8})$/.test(key);
}
