/** Whether PostgreSQL can store the text: no column takes NUL, and UTF-8 has no lone surrogates. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * The text with NUL and lone surrogates escaped as in JSON, for reasons and errors that quote what came from outside.
 *
 * @example
 * storableText('"a\0b" is not a member'); // '"a\\u0000b" is not a member'
 */
export function storableText(text: string): string {
  return text.replaceAll(
    /[\0\p{Surrogate}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
