import type { JsonNode } from './tape.ts';

/** An operation of a patch (RFC 6902). A path is a list of keys; the empty path is the document itself. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: readonly string[]; readonly value: JsonNode }
  | { readonly op: 'remove'; readonly path: readonly string[] }
  | { readonly op: 'move' | 'copy'; readonly path: readonly string[]; readonly from: readonly string[] };

/**
 * Why an operation fails. `no place`: nothing at the path can hold the value. `beyond`: the index is after the end of
 * an array. `nothing`: there is no value. `document`: the operation would remove the document itself.
 */
export type PatchReason =
  | 'no place'
  | 'beyond'
  | 'nothing'
  | 'document'
  | 'into itself'
  | 'test failed'
  | 'too many bytes'
  | 'too many values'
  | 'too deep'
  | 'too much moved';

/** An operation of a patch cannot be applied. `index` counts the operations from 0; `path` is the path that failed. */
export class PatchFault extends Error {
  readonly index: number;
  readonly reason: PatchReason;
  readonly at: 'path' | 'from';

  constructor(index: number, reason: PatchReason, at: 'path' | 'from' = 'path') {
    super(`operation ${index} of the patch: ${reason}`);
    this.name = 'PatchFault';
    this.index = index;
    this.reason = reason;
    this.at = at;
  }
}

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
