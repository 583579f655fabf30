import { readCharacter, readClass } from './regex-class.ts';

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
