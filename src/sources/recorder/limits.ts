/** Changes in a request. */
export const maxChanges = 2_000;
/** Bytes of a body after unpacking. A body with one change alone may have as many as the longest line of an import. */
export const maxBytes = 8 * 1024 * 1024;
export const maxBytesOfOne = 16 * 1024 * 1024;
/** JSON values in a body. */
export const maxValues = 1_000_000;
/** Levels of arrays and objects in a document. */
export const maxLevels = 10_000;
/** Bytes around a change of the maximum length: brackets, a line end. */
export const bodyLimit = maxBytesOfOne + 16;
