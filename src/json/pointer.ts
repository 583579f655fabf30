/**
 * The keys of a JSON Pointer (RFC 6901), or undefined where the text is none.
 *
 * @example
 * parsePointer('/lines/0/a~1b'); // ['lines', '0', 'a/b']
 * parsePointer(''); // [], the document itself
 */
export function parsePointer(text: string): string[] | undefined {
  if (!/^(?:\/(?:[^~/]|~[01])*)*$/s.test(text)) return undefined;
  return text
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The index that a key of a path is in an array; undefined for `01`, `-1`, `length` and other keys that are none. */
export function arrayIndexOf(key: string): number | undefined {
  return /^(?:0|[1-9][0-9]{0,8})$/.test(key) ? Number(key) : undefined;
}
