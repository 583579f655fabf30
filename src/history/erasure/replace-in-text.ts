/** Texts to search and their replacement. */
export interface Replacing {
  /** The name of an actor and what providers know them by, or the id of a document and its names. */
  readonly needles: readonly string[];
  /** Ids of people that are numbers: replaced where a text says that they are such ids, not everywhere. */
  readonly numbers?: readonly string[] | undefined;
  readonly replacement: string;
}

/** The same with numbers as any other text: to delete a row, which may have the id of a person under any name. */
export function withNumbers({ needles, numbers = [], replacement }: Replacing): Replacing {
  return { needles: [...needles, ...numbers], replacement };
}

/** Characters. Shorter names and ids match only alone, or after a quotation mark, colon or bracket, as in queries. */
const minFree = 4;
/** Levels of JSON texts within JSON texts that are searched. */
const maxLevels = 3;

/** Whether a text, or a string of a JSON text, contains one of the needles. */
export function isIn(text: string, replacing: Replacing): boolean {
  return replaceInJson(text, replacing) !== text;
}

/** Without numbers, which do not identify a person in an id or a path's name. */
export function identifying({ needles, replacement }: Replacing): Replacing {
  return { needles: needles.filter((needle) => !/^\d+$/.test(needle)), replacement };
}

/** Patterns of LIKE for texts that may contain a needle. A JSON text may escape its characters, so every \u matches. */
export function likePatterns(needles: readonly string[]): string[] {
  return [...needles.flatMap(escapesOf).map((text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`), '%\\\\u%'];
}

const patterns = new WeakMap<Replacing, readonly RegExp[]>();

/** The text with each needle replaced that is not part of a longer word. */
export function replaceInText(text: string, replacing: Replacing): string {
  return patterns
    .getOrInsertComputed(replacing, patternsOf)
    .reduce((left, pattern) => left.replace(pattern, () => replacing.replacement), text);
}

/** The same within the strings of a JSON text, whose numbers keep their digits, or in any other text. */
export function replaceInJson(text: string, replacing: Replacing): string {
  if (!/^\s*["[{]/.test(text)) return replaceInText(text, replacing);
  return text.replace(/"(?:[^"\\]|\\.)*"/gs, (quoted) => {
    const decoded = decodedOf(quoted);
    const replaced = replaceInText(decoded, replacing);
    return replaced === decoded ? quoted : JSON.stringify(replaced);
  });
}

function decodedOf(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1, -1);
  }
}

/** Behind `actorId:` and the like in a query, also in a list, and behind such members in JSON within a text. */
const behindIds = String.raw`(?<=(?:actorId|onBehalfOfId|context\.(?:"[^"]*"|[^\s:()]+))(?:\\*")?\s*:\s*(?:\((?:[^()]*,)?\s*)?(?:\\*")?|onBehalfOf\\*"\s*:\s*\{[^{}]*"id\\*"\s*:\s*\\*")`;

function patternsOf({ needles, numbers = [] }: Replacing): readonly RegExp[] {
  const all = needles.flatMap(escapesOf);
  const longestFirst = [...new Set(all)].filter((needle) => needle !== '').sort((a, b) => b.length - a.length);
  const ofNumbers = numbers.map((number) => new RegExp(`${behindIds}${number}(?![\\p{L}\\p{N}_])`, 'giu'));
  const ofNeedles = longestFirst.map((needle) => {
    const [before, after] = ['(?<![\\p{L}\\p{N}_])', '(?![\\p{L}\\p{N}_])'];
    const from = isWord(needle.slice(0, 1)) ? before : '';
    const to = isWord(needle.slice(-1)) ? after : '';
    const found = `${from}${RegExp.escape(needle)}${to}`;
    const isShort = [...needle].length < minFree;
    return new RegExp(isShort ? `(?<=["':(,])${found}|^${found}$` : found, 'gu');
  });
  return [...ofNumbers, ...ofNeedles];
}

/** The text, and how it is escaped in JSON texts within JSON texts. */
function escapesOf(text: string): string[] {
  const escaped = [text];
  for (let level = 0; level < maxLevels; level += 1) escaped.push(JSON.stringify(escaped.at(-1)).slice(1, -1));
  return [...new Set(escaped)];
}

function isWord(character: string): boolean {
  return /[\p{L}\p{N}_]/u.test(character);
}
