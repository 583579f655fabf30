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

/** What an entry keeps of two documents. */
export interface Difference {
  /** JSON text of the map from path to `{before, after}`. */
  paths: string;
  /** What `paths` does not tell about the two documents (marks.ts). Most have none. */
  marks: string | undefined;
}

/**
 * Compares `before` and `after`, either of which may be absent: the JSON text of an entry's `paths` (contract 6) of at most `maxBytes`,
 * `{"a.b":{"before":…,"after":…}}`, every number and string as it was written, with the marks beside. `{}` where nothing differs. Throws
 * `PathsTooLargeError`. Time and memory are linear in the documents and in the result. `isWhole`: see `Marks`.
 *
 * Objects that are there on both sides are walked even where one of them is empty: from `{}` to `{"a":1}` there is the path `a`
 * alone. The array rule holds for two arrays of which one is empty. A document that is an array is one value at `""`.
 */
export function differenceOf(
  before: JsonNode | undefined,
  after: JsonNode | undefined,
  { isWhole, maxBytes }: { isWhole: boolean; maxBytes?: number | undefined },
): Difference {
  const { list } = new Walk(before, after);
  return { paths: list.toText(maxBytes), marks: list.toMarks(isWhole) };
}

/** Whether two documents are equal: numbers by decimal value, strings as decoded, objects in any order of keys. */
export function isUnchanged(before: JsonNode, after: JsonNode): boolean {
  return new Walk(before, after).list.count === 0;
}

/** An object or an array during its walk, on one side or on both. */
interface Frame {
  isArray: boolean;
  /** The containers, -1 where there is none on that side. */
  before: number;
  after: number;
  /** The next key or element of each side, -1 after the last. */
  nextBefore: number;
  nextAfter: number;
  /** The position of the next element. */
  index: number;
  /** The remaining pairs of keys that stand in another order on the other side: last first, -1 for none. */
  rest: number[] | undefined;
  /** The key or position that leads here from the frame above, the side it is from, and its segment once it is made. */
  key: number;
  side: number;
  segment: number;
  /** The state of the list when the walk entered this frame. */
  count: number;
  bytes: number;
}

const noTape = new JsonTape();

/** A walk through two documents side by side. It has a stack of its own, because documents nest deeper than calls can. */
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

  /** A document that is no object, or an empty one, has only the path `""`. */
  #visitDocument(before: number, after: number): void {
    const kind = this.#kindToWalk(before, after);
    const isPair = before !== -1 && after !== -1;
    if (kind === braceByte || (kind === bracketByte && isPair)) this.#enter(before, after, kind, -1, arrayIndex);
    else if (!this.#isSame(before, after)) this.list.addMember(rootSegment, before, after);
  }

  /** Enters two values, one of which may be missing (-1). Adds them as a member where they are leaves that differ. */
  #visit(before: number, after: number, key: number, side: number): void {
    const kind = this.#kindToWalk(before, after);
    if (kind !== 0) this.#enter(before, after, kind, key, side);
    else if (!this.#isSame(before, after)) {
      this.list.addMember(this.list.addSegment(this.#currentSegment(), key, side), before, after);
    }
  }

  /** The first byte of two containers of one kind, or of a filled container that appears or vanishes; 0 for leaves. */
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

  /** The segment of the innermost frame. It is made late, because most frames have no difference and need none. */
  #currentSegment(): number {
    const frames = this.#frames;
    let made = frames.length - 1;
    while ((frames[made] as Frame).segment === -1) made -= 1;
    let segment = (frames[made] as Frame).segment;
    for (const frame of made === frames.length - 1 ? [] : frames.slice(made + 1)) {
      segment = this.list.addSegment(segment, frame.key, frame.side);
      frame.segment = segment;
    }
    return segment;
  }

  /** Visits the next pair of elements. Returns false after the last, or once the elements add as much as the whole array would. */
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

  /** Visits the next pair of members, as long as both sides have their keys in the same order. Returns false after the last. */
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

  /** Pairs the keys after `before` and after `after` by name. */
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
   * Keeps the elements in the list, or replaces them by the whole array where that adds no more bytes. A document is always whole.
   * Returns whether the array is one value now.
   */
  #decideArray(frame: Frame): boolean {
    const isDocument = frame.segment === rootSegment && this.list.count > frame.count;
    if (!isDocument && !this.#isShorterWhole(frame)) return false;
    this.list.cutBack(frame.count, frame.bytes, frame.segment);
    this.list.addMember(frame.segment, frame.before, frame.after);
    return true;
  }

  /** The paths of children do not tell whether a container without children is there. The document itself always is. */
  #markEmpty({ before, after, segment }: Frame): void {
    if (segment === rootSegment || before === -1 || after === -1) return;
    if (firstChild(this.#after, after) === -1) this.list.addKept(segment);
    else if (firstChild(this.#before, before) === -1) this.list.addWasEmpty(segment);
  }

  /** Whether elements of the array differ, and those visited so far add as many bytes to `paths` as the whole array would. */
  #isShorterWhole(frame: Frame): boolean {
    if (this.list.count === frame.count) return false;
    return this.list.memberBytes(frame.segment, frame.before, frame.after) <= this.list.bytes - frame.bytes;
  }
}
