import {
  type And,
  type AnyCondition,
  and,
  type DocumentQuery,
  type Glob,
  glob,
  itemMatch,
  itemQuery,
  type Match,
  match,
  or,
  type Query,
  type Text,
  text,
} from './ast.ts';
import { readCharacter, readClass } from './spans.ts';

/**
 * The text or the glob that means the same as a regular expression. Undefined for an expression that is more than a
 * text with `^` or `$` at its ends.
 *
 * @example
 * plainRegex('23$'); // the glob *23
 */
export function plainRegex(source: string): Text | Glob | undefined {
  const { groups } = plain.exec(source) ?? {};
  if (groups === undefined) return undefined;
  const { begin, literal = '', end } = groups;
  const characters: string[] = [];
  for (let offset = 0; offset < literal.length; ) {
    const character = readCharacter(literal, offset);
    characters.push(String.fromCodePoint(character.codePoint));
    offset = character.end;
  }
  const found = characters.join('');
  if (begin !== '' && end !== '') return text(found, true);
  return glob([...(begin === '' ? [''] : []), found, ...(end === '' ? [''] : [])]);
}

/** Escapes of punctuation only: an escaped letter or digit may be a class or a code. */
const plain = /^(?<begin>\^?)(?<literal>(?:[^\\^$.*+?()[\]{}|]|\\[!-/:-@[-`{-~])*)(?<end>\$?)$/su;

/**
 * The same query with a text or a glob instead of each regular expression that is as plain. Indexes and the database
 * answer these; the other expressions need each text in the service.
 */
export function withPlainRegexes(query: Query): Query;
export function withPlainRegexes(query: DocumentQuery): DocumentQuery;
export function withPlainRegexes({ operands, position }: And<AnyCondition>): And<AnyCondition> {
  return and(operands.map(simplified), position);
}

function simplified(condition: AnyCondition): AnyCondition {
  switch (condition.kind) {
    case 'and':
      return and(condition.operands.map(simplified), condition.position);
    case 'or':
      return or(condition.operands.map(simplified), condition.position);
    case 'item': {
      const { field, operand, position } = condition;
      const operands = operand.operands.map((term) => (term.kind === 'match' ? simplifiedMatch(term) : term));
      return itemMatch(field, itemQuery(operands, operand.position), position);
    }
    case 'match':
      return simplifiedMatch(condition);
    default:
      return condition;
  }
}

function simplifiedMatch(term: Match): Match {
  const found = term.matcher.kind === 'regex' ? plainRegex(term.matcher.source) : undefined;
  // A text would match what is beneath it too.
  if (found === undefined || (term.beneath && found.kind === 'text')) return term;
  return match(term.field, found, term.position, term);
}

/**
 * The longest text that stands in whatever a regular expression matches, as far as that is easy to tell: '' where the
 * expression has alternatives, groups or escapes of letters. The expression is a valid one in RE2 syntax.
 *
 * @example
 * requiredText('^order-.*23$'); // 'order-'
 */
export function requiredText(source: string): string {
  // A group may hold alternatives, be repeated or ignore case; an escaped letter may be a class or begin a quotation.
  if (/[|(]|\\[a-zA-Z0-9]/.test(source)) return '';
  const runs: string[][] = [[]];
  const last = () => runs.at(-1) ?? [];
  for (let offset = 0; offset < source.length; ) {
    const character = source[offset] ?? '';
    if (character === '[') {
      offset = readClass(source, offset).end;
      runs.push([]);
    } else if ('.^$+'.includes(character)) {
      offset += 1;
      runs.push([]);
    } else if ('*?{'.includes(character)) {
      // What stands before it may be missing. What is within braces counts as text otherwise.
      if (/^\{(?!\d)/.test(source.slice(offset))) return '';
      last().pop();
      runs.push([]);
      offset = character === '{' ? source.indexOf('}', offset) + 1 || source.length : offset + 1;
    } else {
      const { end, codePoint } = readCharacter(source, offset);
      last().push(String.fromCodePoint(codePoint));
      offset = end;
    }
  }
  return runs.map((run) => run.join('')).reduce((longest, run) => (run.length > longest.length ? run : longest), '');
}
