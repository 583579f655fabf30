/**
 * A pattern of paths, for instance `card.*`: keys joined by `.`, with `\.` and `\\` inside a key, and `*` for any one
 * key or position. It also covers everything inside of the values that it matches.
 */
export interface PathPattern {
  readonly text: string;
  /** Null stands for any key. */
  readonly keys: readonly (string | null)[];
}

/** Reads a pattern, or returns what is wrong with it. A key that is a star is written `\*`. */
export function parsePathPattern(text: string): PathPattern | string {
  const keys: (string | null)[] = [];
  let key = '';
  let isEscaped = false;
  const close = () => {
    keys.push(key === '*' && !isEscaped ? null : key);
    key = '';
    isEscaped = false;
  };
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] as string;
    if (character === '.') close();
    else if (character !== '\\') key += character;
    else {
      const next = text[index + 1];
      if (next !== '.' && next !== '\\' && next !== '*') return 'has a backslash that is not before ".", "*" or "\\"';
      key += next;
      isEscaped = true;
      index += 1;
    }
  }
  close();
  if (keys.length > maxKeys) return `has more than ${maxKeys} keys`;
  return { text, keys };
}

/** The pattern of one key, whatever characters it has. */
export function patternOfKey(key: string): string {
  return key.replaceAll(/[.\\]|^\*$/g, '\\$&');
}

const maxKeys = 100;

/** The keys of a path: separated by dots, with `\` as the escape character. */
export function keysOfPath(path: string): string[] {
  if (!path.includes('\\')) return path.split('.');
  const keys: string[] = [];
  let key = '';
  for (let at = 0; at < path.length; at++) {
    const character = path.charAt(at);
    if (character === '\\') {
      at += 1;
      key += path.charAt(at);
    } else if (character === '.') {
      keys.push(key);
      key = '';
    } else key += character;
  }
  return [...keys, key];
}
