import { JsonNumber } from '@annals/client/json';
import { actor, and, changed, entity, entityId, Glob, glob, or, path, type Query, regex } from '@annals/client/query';
import { literalSource } from '../../../../src/query/written.ts';

export interface WordContext {
  /** What the history may call something that the host has a word for. */
  readonly meanings: (word: string) => {
    readonly entities: readonly string[];
    readonly paths: readonly string[];
    readonly values: readonly string[];
  };
  /** A token may hide who made the changes: then they are not searched. */
  readonly showsActors: boolean;
}

/** Words that are looked for one by one: a query has room for 256 terms and 4,096 characters. */
const maxWords = 5;
/** Names of the host for one word. */
export const maxMeanings = 8;

/**
 * A query for each word: it stands somewhere in the type, the id, the person, the fields or the values of a change.
 * `names`: so many of the host's names are looked for, at most.
 */
export function queriesOfWords(words: string, context: WordContext, names: number): Query[] {
  const each = words.split(/[\s\p{Cc}]+/u).filter((word) => word !== '');
  const rest = each.splice(maxWords - 1).join(' ');
  return [...each, ...(rest === '' ? [] : [rest])].map((word) => queryOfWord(word, context, names));
}

function queryOfWord(word: string, { meanings, showsActors }: WordContext, most: number): Query {
  const somewhere = regex(`(?i)${literalSource(word)}`);
  const meant = meanings(word);
  const entities = meant.entities.slice(0, most);
  const paths = meant.paths.slice(0, most);
  const values = meant.values.slice(0, most);
  return or(
    entity(somewhere),
    and(entity(anything), entityId(somewhere)),
    path(somewhere),
    ...(showsActors ? [actor(somewhere)] : []),
    ...valuesWith(word),
    ...(entities.length === 0 ? [] : [entity(...entities)]),
    ...(paths.length === 0 ? [] : [path(...paths.map(patternOfPath))]),
    ...(values.length === 0 ? [] : [changed({ before: values }), changed({ after: values })]),
  );
}

const anything = glob('*');

/** Stars of the host's paths are those of the query language; without one a path stands for what is beneath it, too. */
function patternOfPath(written: string): string | Glob {
  return written.includes('*') ? new Glob(written.split('*')) : written;
}

/**
 * Patterns of values tell capital letters from small ones, and take no regular expression: a word is looked for as
 * people write it.
 */
function valuesWith(word: string): Query[] {
  const lower = word.toLowerCase();
  const [first = ''] = lower;
  const spellings = new Set([word, lower, word.toUpperCase(), first.toUpperCase() + lower.slice(first.length)]);
  const patterns = [...spellings].map((spelling) => new Glob(['', spelling, '']));
  const sides = [...patterns, ...(isNumber(word) ? [new JsonNumber(word)] : [])];
  try {
    return [changed({ before: sides }), changed({ after: sides })];
  } catch (error) {
    // The language has no pattern for some texts, such as those with its own words between blanks: then the value must
    // be the text.
    if (!(error instanceof TypeError)) throw error;
    return [changed({ before: word }), changed({ after: word })];
  }
}

function isNumber(word: string): boolean {
  return /^-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?$/.test(word);
}
