// How the query language writes its values. Service, client, console and viewer share this file: it imports nothing,
// and the client's package has a copy of it.

/** A name of a field, as the source of a regular expression. A member of the context may be quoted. */
export const fieldName = '(?:[A-Za-z_][A-Za-z0-9_.]*|context\\."(?:[^"\\\\]|\\\\["\\\\])*")';

/** Operators of bounds. The longer ones come first, so that `>=` is not read as `>`. */
export const boundOperators = ['>=', '<=', '>', '<'] as const;

/** An operator as a word of a value without quotes, where it is an error. */
export const operatorWord = /(^|[ (),])(AND|OR|NOT)(?![^ (),])/;

/** A text in quotes: every character of it stands for itself. */
export function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** The name of a field without its quotes: `context."user-agent"` is the member `user-agent`. */
export function plainFieldName(written: string): string {
  return written.endsWith('"') ? `context.${unquoted(written.slice('context.'.length))}` : written;
}

/** The field of a member of the context, with quotes where the name needs them. */
export function contextField(name: string): string {
  return /^[A-Za-z0-9_.]+$/.test(name) ? `context.${name}` : `context.${quoted(name)}`;
}

/** The text inside quotes, whose closing one may be missing. */
export function unquoted(written: string): string {
  const inner = written.slice(1, written.length > 1 && written.endsWith('"') ? -1 : undefined);
  return inner.replace(/\\(["\\])/g, '$1');
}

/** Texts that mean themselves without quotes: words with single blanks between them. */
const plain = /^[\p{L}\p{N}_@.#/+'&-]+(?: [\p{L}\p{N}_@.#/+'&-]+)*$/u;

/**
 * A text as a value, without quotes if it needs none.
 *
 * @example
 * writtenValue('Jane Doe'); // Jane Doe
 * writtenValue('type: x'); // "type: x"
 */
export function writtenValue(text: string): string {
  return plain.test(text) && !operatorWord.test(text) ? text : quoted(text);
}

/** A bare value ends before a blank and a field, may not begin like another kind of value, and is trimmed. */
const misread = new RegExp(`${operatorWord.source}| ${fieldName}:|^[ "~<>]| $`);

/**
 * A pattern without quotes from the literal texts between its stars; a text in quotes if it has no star; undefined if
 * the language has no such form.
 */
export function bareGlob(parts: readonly string[]): string | undefined {
  if (parts.length === 1) return quoted(parts.join(''));
  if (misread.test(parts.join('*'))) return undefined;
  return parts.map((part) => part.replace(/[*(),\\]/g, '\\$&')).join('*');
}

/** The literal texts between the stars of a bare value. A backslash escapes only `*`, `(`, `)`, `,` and `\`. */
export function bareParts(raw: string): string[] {
  const parts = [''];
  for (const [token] of raw.matchAll(/\\[*(),\\]|[\s\S]/g)) {
    if (token === '*') parts.push('');
    else parts[parts.length - 1] += token.length === 2 ? token.slice(1) : token;
  }
  return parts;
}

/** The source of a regular expression of RE2 that matches the text itself. */
export function literalSource(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
