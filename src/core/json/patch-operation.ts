import type { JsonNode } from './tape.ts';

/**
 * One operation of a patch (RFC 6902). A path is a list of keys from the document down; the empty path is the document
 * itself.
 */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: readonly string[]; readonly value: JsonNode }
  | { readonly op: 'remove'; readonly path: readonly string[] }
  | { readonly op: 'move' | 'copy'; readonly path: readonly string[]; readonly from: readonly string[] };

/**
 * Why an operation fails. `no place`: nothing at the path can hold the value. `beyond`: the index is after the end of an
 * array. `nothing`: there is no value. `document`: the operation would remove the document itself.
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
