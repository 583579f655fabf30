/**
 * Facts about the documents of a change that `paths` does not contain, stored with the entry as JSON text but never
 * shown. `rebuild/` restores the documents from entries and marks.
 *
 * Most entries need no marks, by these defaults: a container whose keys in `paths` are all positions is an array; one
 * that loses all children is removed; one that gets its first children is new; the path `""` is the document.
 */
export interface Marks {
  /** The update had one side only, so its paths hold a whole document; without paths it had neither. */
  readonly whole?: true;
  /** The path `""` is a key of the document. */
  readonly root?: true;
  /** Paths of containers that remain although they lost all children. */
  readonly kept?: readonly string[];
  /** Paths of containers that existed before they got their first children. */
  readonly wasEmpty?: readonly string[];
  /**
   * Objects whose keys in `paths` all look like positions. Each is two values: the 1-based index in this list of an
   * enclosing object (0: the document), and its path from there.
   */
  readonly objects?: readonly (number | string)[];
}

/** Whether a key could be a position in an array. */
export function isPosition(key: string): boolean {
  return /^(?:0|[1-9]\d{0,8})$/.test(key);
}
