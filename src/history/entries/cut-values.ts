import { StringDecoder } from 'node:string_decoder';
import { threaded } from '../../core/fairness/threads.ts';
import { entriesOf, kindOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { cellAt, type JsonNode, sizeCell, startCell } from '../../core/json/tape.ts';

const minLimit = 64;
/** Bytes of a value, tried in this order while a text is too long. */
export const valueLimits = [4_096, 1_024, 256, minLimit] as const;

/** The `paths` of an entry after values were cut. */
interface CutPaths {
  readonly paths: string;
  /** The paths with a value that was cut, and the bytes of the longest value of each. */
  readonly cut: readonly string[];
  readonly lengths: readonly number[];
}

/**
 * Cuts each value whose JSON text has more than `limit` bytes: a string to its beginning, any other value to a string
 * with the beginning of its text. Takes the `paths` of several entries, as JSON texts; long ones are cut in a thread.
 *
 * @example
 * await cutValues(['{"a":{"after":[1,2,3]}}'], 4); // [{ paths: '{"a":{"after":"[1,2"}}', cut: ['a'], lengths: [7] }]
 */
export const cutValues = threaded(import.meta.url, 'cutValues', (paths: readonly string[], limit: number): CutPaths[] =>
  paths.map((text) => cutPaths(text, limit)),
);

/** The first paths of an entry that fit, as JSON text; their cut values, in words; how many paths are left out. */
interface FirstPaths {
  readonly paths: string;
  readonly cut: readonly string[];
  readonly left: number;
}

export const firstPaths = threaded(import.meta.url, 'firstPaths', (text: string, maxBytes: number): FirstPaths => {
  const minimalPaths = cutPaths(text, minLimit);
  const words = new Map(wordsOfCut(minimalPaths).map((word, place) => [minimalPaths.cut[place], word]));
  const all = entriesOf(parseJson(minimalPaths.paths));
  let room = maxBytes;
  const end = all.findIndex(([path, sides]) => {
    const word = words.get(path);
    room -= Buffer.byteLength(objectText([[path, sides]]));
    if (word !== undefined) room -= Buffer.byteLength(JSON.stringify(word)) + 1;
    return room < 0;
  });
  const shown = end === -1 ? all : all.slice(0, end);
  return {
    paths: objectText(shown),
    cut: shown.flatMap(([path]) => words.get(path) ?? []),
    left: all.length - shown.length,
  };
});

/** Each cut value, as its path with the bytes that it has. */
export function wordsOfCut({ cut, lengths }: Pick<CutPaths, 'cut' | 'lengths'>): string[] {
  return cut.map((path, place) => `${path} (${lengths[place]} bytes)`);
}

/** A document as far as it fits. */
export interface FittingDocument {
  readonly text: string;
  /** The members whose values were cut, with the bytes that they have. */
  readonly cut: readonly (readonly [name: string, bytes: number])[];
  readonly left: number;
}

/** Cuts a document (JSON text) to at most `maxBytes`: first the values of its members, then its last members. */
export const fitDocument = threaded(
  import.meta.url,
  'fitDocument',
  (text: string, maxBytes: number): FittingDocument => {
    if (Buffer.byteLength(text) <= maxBytes) return { text, cut: [], left: 0 };
    const document = parseJson(text);
    if (kindOf(document) !== 'object') {
      return { text: beginning(document, maxBytes / 2), cut: [['document', lengthOf(document)]], left: 0 };
    }
    const all = entriesOf(document);
    const limit = valueLimits.find((tried) => sizeOfMembers(all, tried) <= maxBytes) ?? minLimit;
    const shown: [string, JsonNode | string][] = [];
    let room = maxBytes - 2;
    for (const [name, value] of all) {
      const member: [string, JsonNode | string] = [name, isLonger(value, limit) ? beginning(value, limit) : value];
      room -= Buffer.byteLength(objectText([member])) - 1;
      if (room < 0) break;
      shown.push(member);
    }
    const cut = all.slice(0, shown.length).filter(([, value]) => isLonger(value, limit));
    return {
      text: objectText(shown),
      cut: cut.map(([name, value]) => [name, lengthOf(value)]),
      left: all.length - shown.length,
    };
  },
);

function sizeOfMembers(members: readonly (readonly [string, JsonNode])[], limit: number): number {
  return members.reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(JSON.stringify(name)) + Math.min(lengthOf(value), limit) + 2,
    2,
  );
}

function cutPaths(text: string, limit: number): CutPaths {
  const cut: string[] = [];
  const lengths: number[] = [];
  const members = entriesOf(parseJson(text)).map(([path, change]): [string, string] => {
    const sides = entriesOf(change);
    if (!sides.some(([, value]) => isLonger(value, limit))) return [path, objectText(sides)];
    cut.push(path);
    lengths.push(Math.max(...sides.map(([, value]) => lengthOf(value))));
    return [
      path,
      objectText(sides.map(([side, value]) => [side, isLonger(value, limit) ? beginning(value, limit) : value])),
    ];
  });
  return { paths: objectText(members), cut, lengths };
}

function isLonger(value: JsonNode, limit: number): boolean {
  return lengthOf(value) > limit;
}

function lengthOf({ tape, node }: JsonNode): number {
  return cellAt(tape.cells, node + sizeCell);
}

/** The beginning of a value as the JSON text of a string. */
function beginning(value: JsonNode, limit: number): string {
  const { bytes, cells } = value.tape;
  const start = cellAt(cells, value.node + startCell);
  // The decoder leaves out a character that is not whole.
  const textOf = (from: number, to: number) => new StringDecoder('utf8').write(bytes.subarray(from, to));
  if (kindOf(value) !== 'string') return JSON.stringify(textOf(start, start + limit));
  return `"${withoutPartOfEscape(textOf(start + 1, start + limit - 1))}"`;
}

/** Drops an incomplete escape at the end, or one that is the first half of a character. */
function withoutPartOfEscape(text: string): string {
  const begin = lastEscape(text);
  if (begin === undefined) return text;
  const end = begin + (text.charAt(begin + 1) === 'u' ? 6 : 2);
  const isHalf = end === text.length && /^\\u[dD][89abAB]/.test(text.slice(begin));
  return end <= text.length && !isHalf ? text : withoutPartOfEscape(text.slice(0, begin));
}

/** The begin of the last escape that may reach to the end of the text. */
function lastEscape(text: string): number | undefined {
  for (let at = text.length - 1; at >= Math.max(0, text.length - 6); at--) {
    if (text.charAt(at) !== '\\') continue;
    let first = at;
    while (text.charAt(first - 1) === '\\') first -= 1;
    // Of a run of backslashes each second one is escaped by the one before it.
    return (at - first) % 2 === 0 ? at : at - 1;
  }
  return undefined;
}
