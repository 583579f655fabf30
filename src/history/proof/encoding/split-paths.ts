/**
 * The paths of an entry, each as its name, `before` and `after`: JSON texts, as they are stored, null where a side is not there. The
 * text is as recording writes it; any other is one path without a name whose `after` is the whole text. So texts that
 * differ have different paths.
 *
 * @example
 * splitPaths('{"a":{"before":1,"after":[2]},"b":{"after":"x"}}'); // ['"a"', '1', '[2]', '"b"', null, '"x"']
 */
export function splitPaths(text: string): (string | null)[] {
  if (text === '{}') return [];
  const parts: (string | null)[] = [];
  let at = 0;
  for (;;) {
    if (text.charCodeAt(at) !== (at === 0 ? openBrace : comma) || text.charCodeAt(at + 1) !== quote) break;
    const name = endOfString(text, at + 1);
    if (name === -1 || !text.startsWith(':{', name)) break;
    parts.push(text.slice(at + 1, name));
    at = name + ':{'.length;
    const before = text.startsWith(beforeKey, at) ? endOfValue(text, at + beforeKey.length) : undefined;
    parts.push(before === undefined ? null : text.slice(at + beforeKey.length, before));
    if (before !== undefined) at = before;
    const afterKey = before === undefined ? firstAfterKey : laterAfterKey;
    const after = text.startsWith(afterKey, at) ? endOfValue(text, at + afterKey.length) : undefined;
    parts.push(after === undefined ? null : text.slice(at + afterKey.length, after));
    if (after !== undefined) at = after;
    if (at === -1 || text.charCodeAt(at) !== closeBrace) break;
    at += 1;
    if (text.charCodeAt(at) === closeBrace && at === text.length - 1) return parts;
  }
  return [null, null, text];
}

const beforeKey = '"before":';
const firstAfterKey = '"after":';
const laterAfterKey = ',"after":';

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** The position after the closing quote of the string that begins at `start`; -1 where it has no end. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
  }
  return -1;
}

/** The position of the comma or brace that follows the value which begins at `start`; -1 where it has no end. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at) - 1;
      if (at < 0) return -1;
    } else if (code === openBrace || code === openBracket) depth += 1;
    else if (depth === 0 && (code === comma || code === closeBrace)) return at;
    else if (code === closeBrace || code === closeBracket) depth -= 1;
  }
  return -1;
}
