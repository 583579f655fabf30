/**
 * What `paths` alone does not tell about the documents of a change. An entry keeps it as JSON text and never shows it. From the
 * entries and marks of a document, `rebuild/` makes the documents that were written.
 *
 * Most entries need no marks, because a rule stands for what is usual: a container whose keys in `paths` all are positions is an
 * array, a container that loses all that it had is gone, one that gets its first children was not there, and the path `""` is the
 * document.
 */
export interface Marks {
  /** The update came with one side alone, so the other side of its paths is a whole document; without paths it came with none. */
  readonly whole?: true;
  /** The path `""` is a key of the document. */
  readonly root?: true;
  /** Paths of containers that stay though they lost all that they had. */
  readonly kept?: readonly string[];
  /** Paths of containers that were there before they got their first children. */
  readonly wasEmpty?: readonly string[];
  /**
   * Objects whose keys in `paths` all look like positions. Each is two values: the place in this list, from 1, of an object that
   * it stands in (0: the document), and its path from there.
   */
  readonly objects?: readonly (number | string)[];
}

/** Whether a key could be a position in an array. */
export function isPosition(key: string): boolean {
  return /^(?:0|[1-9]\d{0,8})$/.test(key);
}
