import { scanQuery, type Term } from '../../query/scan.ts';
import { fieldName, unquoted } from '../../query/written.ts';

/** Texts to search and their replacement. */
export interface Replacing {
  /** The name of an actor and what providers know them by, the id of a document or a person, and their names. */
  readonly needles: readonly string[];
  /** Ids of people that are numbers. */
  readonly numbers?: readonly string[] | undefined;
  /**
   * Of a person by the id: the needles that are replaced wherever they stand as a word. The others may be common words
   * (`create`, `Support`): they and numbers are replaced only where a text says that they are a person.
   */
  readonly anywhere?: readonly string[] | undefined;
  readonly replacement: string;
}

/** For rows that are deleted: numbers are texts like the others, since a row may have the id under any name. */
export function withNumbers({ needles, numbers = [], replacement }: Replacing): Replacing {
  return { needles: [...needles, ...numbers], replacement };
}

/** Characters. Shorter names and ids match only alone, or after a quotation mark, colon or bracket, as in queries. */
const minFree = 4;
/** Levels of JSON texts within JSON texts that are searched. */
const maxLevels = 3;

/** Whether a text, or a string of a JSON text, contains one of the needles. */
export function isIn(text: string, replacing: Replacing, isPerson = false): boolean {
  return replaceInJson(text, replacing, isPerson) !== text;
}

/** What identifies a person in an id or a path's name: no number, and of a person by the id no single word. */
export function identifying({ needles, anywhere, replacement }: Replacing): Replacing {
  const isMeant = (needle: string) => anywhere === undefined || anywhere.includes(needle) || needle.includes(' ');
  return { needles: needles.filter((needle) => !/^\d+$/.test(needle) && isMeant(needle)), replacement };
}

/** Patterns of LIKE for texts that may contain a needle. A JSON text may escape its characters, so every \u matches. */
export function likePatterns(needles: readonly string[]): string[] {
  return [...needles.flatMap(escapesOf).map((text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`), '%\\\\u%'];
}

/** The needles as words: what of a person stays where no text says that it is a person. */
export function asWords({ needles, replacement }: Replacing): Replacing {
  return { needles, replacement };
}

const patterns = new WeakMap<Replacing, readonly RegExp[]>();

/**
 * The text with each needle replaced that is not part of a longer word.
 *
 * @param isPerson whether the text as a whole is the name or the id of a person
 */
export function replaceInText(text: string, replacing: Replacing, isPerson = false): string {
  if (replacing.anywhere !== undefined) return replacePerson(text, replacing, replacing.anywhere, isPerson);
  return patterns
    .getOrInsertComputed(replacing, ({ needles }) => patternsOf(needles))
    .reduce((left, pattern) => left.replace(pattern, () => replacing.replacement), text);
}

/** The same within the strings of a JSON text, whose numbers keep their digits, or in any other text. */
export function replaceInJson(text: string, replacing: Replacing, isPerson = false): string {
  if (!/^\s*["[{]/.test(text)) return replaceInText(text, replacing, isPerson);
  if (replacing.anywhere !== undefined) return replaceInMembers(text, replacing, isPerson);
  return text.replace(/"(?:[^"\\]|\\.)*"/gs, (quoted) => {
    const decoded = decodedOf(quoted);
    const replaced = replaceInText(decoded, replacing);
    return replaced === decoded ? quoted : JSON.stringify(replaced);
  });
}

/** Members of JSON whose strings are people, also the `name` and the `id` of an object under such a name. */
const personMember =
  /^(?:actor|actorId|onBehalfOf|onBehalfOfId|user|userId|endUser|recordedBy|(?:created|changed|updated|modified)By)$/;
/** Members that are never people. */
const otherMember = /^(?:type|entity|entityId|path)$/;

/** Whether a member of this name is a person. */
export function isPersonMember(name: string, parent = ''): boolean {
  return personMember.test(name) || (/^(?:name|id)$/.test(name) && personMember.test(parent));
}

/** Replaces a person in the values of a JSON text, also one that is cut off, and in JSON texts within it. */
function replaceInMembers(text: string, replacing: Replacing, isPerson: boolean): string {
  const around: string[] = [];
  let member: string | undefined;
  return text.replace(/"(?:[^"\\]|\\.)*"(?:\s*:)?|[[\]{}]/gs, (token) => {
    if (token === '{' || token === '[') around.push(member ?? '');
    else if (token === '}' || token === ']') member = around.pop();
    else if (token.endsWith(':')) member = decodedOf(token.replace(/\s*:$/, ''));
    else {
      if (member !== undefined && otherMember.test(member)) return token;
      const decoded = decodedOf(token);
      const isOfPerson = member === undefined ? isPerson : isPersonMember(member, around.at(-1));
      const replaced = /^\s*[[{]/.test(decoded)
        ? replaceInMembers(decoded, replacing, false)
        : replaceInText(decoded, replacing, isOfPerson);
      return replaced === decoded ? token : JSON.stringify(replaced);
    }
    return token;
  });
}

function decodedOf(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted.slice(1, -1);
  }
}

// What lies before a name is bounded: without that, a long text would take quadratic time.
const list = String.raw`(?:\((?:[^()"]{0,1000},)?\s*)?`;
const afterName = String.raw`(?:\\*")?\s{0,9}:\s{0,9}`;
/** Before the name or the id of a person: in a query, also in a list, or in JSON within a text. */
const behindPerson = String.raw`(?:(?<![\w.])(?:actor|actorId|onBehalfOf|onBehalfOfId|context\.(?:\\*"[^"]{0,200}"|[^\s:()"]{1,200}))${afterName}${list}|onBehalfOf\\*"\s*:\s*\{[^{}]{0,1000}"(?:id|name)\\*"\s*:\s*)`;
const behindOther = String.raw`(?<![\w.])(?:type|entity|entityId|path|related[\w.]*)${afterName}${list}\\*"?`;
/** After a value without quotes. */
const endOfBare = String.raw`\s*(?:$|[\r\n,)\]}])|\\*["'\x60]|\s+(?:${fieldName}:|(?:AND|OR|NOT)\b)`;
/** Fields of a query whose values are no people. */
const otherField = /^(?:type|entity|entityId|path|paths|related|change|name|text|correlationId)(?:\.|$)/;

interface PersonPatterns {
  /** Whether a text may have one of them at all. Undefined if there is no name and no id, as the next. */
  readonly written: RegExp | undefined;
  readonly named: RegExp | undefined;
  readonly anywhere: readonly RegExp[];
}

const personPatterns = new WeakMap<Replacing, PersonPatterns>();

function personPatternsOf({ needles, numbers = [], anywhere = [] }: Replacing): PersonPatterns {
  const written = [...needles, ...numbers].flatMap((needle) => [
    ...escapesOf(needle),
    needle.replace(/[*(),\\]/g, '\\$&'),
  ]);
  const all = longestFirst(written)
    .map((needle) => RegExp.escape(needle))
    .join('|');
  const quoted = String.raw`(?=(?:${all})\\*")(?<=${behindPerson}\\*")(?:${all})(?=\\*")`;
  const bare = `(?=${all})(?<=${behindPerson})(?:${all})(?=${endOfBare})`;
  return {
    written: all === '' ? undefined : new RegExp(all, 'u'),
    named: all === '' ? undefined : new RegExp(`${quoted}|${bare}`, 'gu'),
    anywhere: longestFirst(anywhere.flatMap(escapesOf)).map(
      (id) => new RegExp(`(?<!${behindOther})${patternOf(id)}`, 'gu'),
    ),
  };
}

function replacePerson(text: string, replacing: Replacing, ids: readonly string[], isPerson: boolean): string {
  const { needles, numbers = [], replacement } = replacing;
  if (isPerson && (needles.includes(text) || numbers.includes(text))) return replacement;
  const { written, named, anywhere } = personPatterns.getOrInsertComputed(replacing, personPatternsOf);
  const scanned = written?.test(text) === true ? replaceInQuery(text, replacing) : text;
  const without = named === undefined ? scanned : scanned.replace(named, () => replacement);
  if (!ids.some((id) => without.includes(id))) return without;
  return anywhere.reduce((left, pattern) => {
    const isOther = valuesOf(scanQuery(left).terms, otherField);
    return left.replace(pattern, (found, at: number) => (isOther(at) ? found : replacement));
  }, without);
}

/** Fields of a query whose values are people, or may be. */
const personField = /^(?:actor|actorId|onBehalfOf|onBehalfOfId|context\..+)$/s;

/** Replaces whole values of people in a query, in lists too. A text that is no query has no such terms. */
function replaceInQuery(text: string, { needles, numbers = [], replacement }: Replacing): string {
  const { terms, tokens } = scanQuery(text);
  const isOfPerson = valuesOf(terms, personField);
  let [replaced, done] = ['', 0];
  for (const { kind, start, end } of tokens) {
    if (kind !== 'value' && kind !== 'quoted') continue;
    if (!isOfPerson(start)) continue;
    const value = text.slice(start, end);
    const plain = kind === 'quoted' ? unquoted(value) : value.replace(/\\([*(),\\])/g, '$1');
    if (!needles.includes(plain) && !numbers.includes(plain)) continue;
    replaced += text.slice(done, start) + (kind === 'quoted' ? `"${replacement}"` : replacement);
    done = end;
  }
  return replaced + text.slice(done);
}

/** Whether an offset, of ascending ones, is in the value of a term with such a field. */
function valuesOf(terms: readonly Term[], field: RegExp): (at: number) => boolean {
  const values = terms.filter((term) => field.test(term.field));
  let [next, reach] = [0, 0];
  return (at) => {
    for (let value = values[next]; value !== undefined && value.valueStart <= at; value = values[next]) {
      reach = Math.max(reach, value.end);
      next += 1;
    }
    return at < reach;
  };
}

function patternsOf(needles: readonly string[]): readonly RegExp[] {
  return longestFirst(needles.flatMap(escapesOf)).map((needle) => new RegExp(patternOf(needle), 'gu'));
}

function longestFirst(needles: readonly string[]): string[] {
  return [...new Set(needles)].filter((needle) => needle !== '').sort((a, b) => b.length - a.length);
}

/** The source of a pattern for a needle as a word. */
function patternOf(needle: string): string {
  const from = isWord(needle.slice(0, 1)) ? '(?<![\\p{L}\\p{N}_])' : '';
  const to = isWord(needle.slice(-1)) ? '(?![\\p{L}\\p{N}_])' : '';
  const found = `${from}${RegExp.escape(needle)}${to}`;
  return [...needle].length < minFree ? `(?:(?<=["':(,])${found}|^${found}$)` : found;
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
