/**
 * The keys of a JSON Pointer (RFC 6901), or undefined if the text is not a JSON Pointer.
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

/** The array index of a key of a path; undefined for `01`, `-1`, `length` and other keys that are not an index. */
export function arrayIndexOf(key: string): number | undefined {
  return /^(?:0|[1-9][0-9]{0,8})$/.test(key) ? Number(key) : undefined;
}
