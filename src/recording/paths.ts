import {
  braceByte,
  bracketByte,
  cellAt,
  cellsOfNode,
  firstByte,
  firstChild,
  type JsonNode,
  JsonTape,
  nextChild,
  startCell,
} from '../core/json/tape.ts';
import { decodedString, isSameKey, isSameScalar } from '../core/json/text.ts';
import { arrayIndex, keyOfAfter, keyOfBefore, PathList, rootSegment } from './path-list.ts';

/** The difference of two documents, as an entry stores it. */
export interface Difference {
  /** JSON text of the map from path to `{before, after}`. */
  paths: string;
  /** Marks (`Marks`). Most changes have none. */
  marks: string | undefined;
}

/**
 * Compares `before` and `after`, either of which may be absent. Returns the marks, and the JSON text of an entry's
 * `paths` (contract 6), `{"a.b":{"before":…,"after":…}}`, with numbers and strings as written; `{}` if nothing differs.
 * Throws `PathsTooLargeError`. Time and memory are linear in the documents and the result. `isWhole`: see `Marks`.
 *
 * Objects on both sides are walked even if one is empty: from `{}` to `{"a":1}` the only path is `a`. The array rule
 * also applies if one of two arrays is empty. A document that is an array is one value at `""`.
 */
export function differenceOf(
  before: JsonNode | undefined,
  after: JsonNode | undefined,
  { isWhole, maxBytes }: { isWhole: boolean; maxBytes?: number | undefined },
): Difference {
  const { list } = new Walk(before, after);
  return { paths: list.toText(maxBytes), marks: list.toMarks(isWhole) };
}

/** Whether two documents are equal: numbers by decimal value, strings decoded, object keys in any order. */
export function isUnchanged(before: JsonNode, after: JsonNode): boolean {
  return new Walk(before, after).list.count === 0;
}

/** An object or an array being walked, on one or both sides. */
interface Frame {
  isArray: boolean;
  /** The containers, or -1 on a side without one. */
  before: number;
  after: number;
  /** The next key or element of each side, or -1 after the last. */
  nextBefore: number;
  nextAfter: number;
  /** The position of the next element. */
  index: number;
  /** The remaining key pairs if the sides differ in order: last first, -1 for none. */
  rest: number[] | undefined;
  /** The key or position in the frame above, its side, and its segment once created. */
  key: number;
  side: number;
  segment: number;
  /** The state of the list on entry to this frame. */
  count: number;
  bytes: number;
}

const noTape = new JsonTape();

/** Walks two documents side by side. Iterative, since documents nest deeper than the call stack. */
class Walk {
  readonly list: PathList;
  readonly #before: JsonTape;
  readonly #after: JsonTape;
  readonly #frames: Frame[] = [];

  constructor(before: JsonNode | undefined, after: JsonNode | undefined) {
    this.#before = before?.tape ?? noTape;
    this.#after = after?.tape ?? noTape;
    this.list = new PathList(this.#before, this.#after);
    if (before === undefined && after === undefined) return;
    this.#visitDocument(before?.node ?? -1, after?.node ?? -1);
    for (let frame = this.#frames.at(-1); frame !== undefined; frame = this.#frames.at(-1)) {
      const isMore = frame.isArray ? this.#stepInArray(frame) : this.#stepInObject(frame);
      if (isMore) continue;
      const isOneValue = frame.isArray && this.#decideArray(frame);
      if (this.list.count > frame.count && !isOneValue) this.#markEmpty(frame);
      this.#frames.pop();
    }
  }

  /** A document that is not an object, or empty, has only the path `""`. */
  #visitDocument(before: number, after: number): void {
    const kind = this.#kindToWalk(before, after);
    const isPair = before !== -1 && after !== -1;
    if (kind === braceByte || (kind === bracketByte && isPair)) this.#enter(before, after, kind, -1, arrayIndex);
    else if (!this.#isSame(before, after)) this.list.addMember(rootSegment, before, after);
  }

  /** Enters two values, one of which may be missing (-1). Adds them as a member if they are different leaves. */
  #visit(before: number, after: number, key: number, side: number): void {
    const kind = this.#kindToWalk(before, after);
    if (kind !== 0) this.#enter(before, after, kind, key, side);
    else if (!this.#isSame(before, after)) {
      this.list.addMember(this.list.addSegment(this.#currentSegment(), key, side), before, after);
    }
  }

  /** The first byte of two containers of one kind, or of a non-empty container on one side; 0 for leaves. */
  #kindToWalk(before: number, after: number): number {
    const tape = before === -1 ? this.#after : this.#before;
    const node = before === -1 ? after : before;
    const kind = firstByte(tape, node);
    if (kind !== braceByte && kind !== bracketByte) return 0;
    const isPair = before !== -1 && after !== -1;
    return (isPair ? firstByte(this.#after, after) === kind : firstChild(tape, node) !== -1) ? kind : 0;
  }

  #isSame(before: number, after: number): boolean {
    if (before === -1 || after === -1) return false;
    if (this.#after.unequal?.has(cellAt(this.#after.cells, after + startCell)) === true) return false;
    return isSameScalar(this.#before, before, this.#after, after);
  }

  #enter(before: number, after: number, kind: number, key: number, side: number): void {
    this.#frames.push({
      isArray: kind === bracketByte,
      before,
      after,
      nextBefore: before === -1 ? -1 : firstChild(this.#before, before),
      nextAfter: after === -1 ? -1 : firstChild(this.#after, after),
      index: 0,
      rest: undefined,
      key,
      side,
      segment: this.#frames.length === 0 ? rootSegment : -1,
      count: this.list.count,
      bytes: this.list.bytes,
    });
  }

  /** The segment of the innermost frame, created lazily, since most frames have no differences. */
  #currentSegment(): number {
    const frames = this.#frames;
    let index = frames.length - 1;
    while ((frames[index] as Frame).segment === -1) index -= 1;
    let segment = (frames[index] as Frame).segment;
    for (const frame of index === frames.length - 1 ? [] : frames.slice(index + 1)) {
      segment = this.list.addSegment(segment, frame.key, frame.side);
      frame.segment = segment;
    }
    return segment;
  }

  /** Visits the next pair of elements. Returns false after the last, or once they take as many bytes as the array. */
  #stepInArray(frame: Frame): boolean {
    const before = frame.nextBefore;
    const after = frame.nextAfter;
    if ((before === -1 && after === -1) || this.#isShorterWhole(frame)) return false;
    if (before !== -1) frame.nextBefore = nextChild(this.#before, before);
    if (after !== -1) frame.nextAfter = nextChild(this.#after, after);
    frame.index += 1;
    this.#visit(before, after, frame.index - 1, arrayIndex);
    return true;
  }

  /** Visits the next pair of members while both sides have the same key order. Returns false after the last. */
  #stepInObject(frame: Frame): boolean {
    if (frame.rest !== undefined) return this.#stepInRest(frame.rest);
    const before = frame.nextBefore;
    const after = frame.nextAfter;
    if (before === -1 && after === -1) return false;
    if (before !== -1 && after !== -1 && !isSameKey(this.#before, before, this.#after, after)) {
      frame.rest = this.#matchKeys(before, after);
      return true;
    }
    if (before !== -1) frame.nextBefore = nextChild(this.#before, before);
    if (after !== -1) frame.nextAfter = nextChild(this.#after, after);
    this.#visitMembers(before, after);
    return true;
  }

  #stepInRest(rest: number[]): boolean {
    const before = rest.pop();
    const after = rest.pop();
    if (before === undefined || after === undefined) return false;
    this.#visitMembers(before, after);
    return true;
  }

  #visitMembers(before: number, after: number): void {
    this.#visit(
      before === -1 ? -1 : before + cellsOfNode,
      after === -1 ? -1 : after + cellsOfNode,
      before === -1 ? after : before,
      before === -1 ? keyOfAfter : keyOfBefore,
    );
  }

  /** Pairs the remaining keys of both sides by name. */
  #matchKeys(before: number, after: number): number[] {
    const ofAfter = new Map<string, number>();
    for (let key = after; key !== -1; key = nextChild(this.#after, key))
      ofAfter.set(decodedString(this.#after, key), key);
    const pairs: number[] = [];
    for (let key = before; key !== -1; key = nextChild(this.#before, key)) {
      const name = decodedString(this.#before, key);
      pairs.push(key, ofAfter.get(name) ?? -1);
      ofAfter.delete(name);
    }
    for (const key of ofAfter.values()) pairs.push(-1, key);
    return pairs.reverse();
  }

  /**
   * Keeps the elements, or replaces them with the whole array if that takes no more bytes; always for a document.
   * Returns whether the array is now one value.
   */
  #decideArray(frame: Frame): boolean {
    const isDocument = frame.segment === rootSegment && this.list.count > frame.count;
    if (!isDocument && !this.#isShorterWhole(frame)) return false;
    this.list.cutBack(frame.count, frame.bytes, frame.segment);
    this.list.addMember(frame.segment, frame.before, frame.after);
    return true;
  }

  /** Paths cannot express an existing container without children. The document itself always exists. */
  #markEmpty({ before, after, segment }: Frame): void {
    if (segment === rootSegment || before === -1 || after === -1) return;
    if (firstChild(this.#after, after) === -1) this.list.addKept(segment);
    else if (firstChild(this.#before, before) === -1) this.list.addWasEmpty(segment);
  }

  /** Whether elements differ, and those visited so far take as many bytes as the whole array. */
  #isShorterWhole(frame: Frame): boolean {
    if (this.list.count === frame.count) return false;
    return this.list.memberBytes(frame.segment, frame.before, frame.after) <= this.list.bytes - frame.bytes;
  }
}
