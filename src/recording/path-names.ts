import { hash } from 'node:crypto';

/** Maximum number of distinct names of one entry. Annals finds an entry with more by reading it. */
export const maxNamesOfEntry = 1_000;
/** Maximum characters of a name. Annals finds an entry with a longer one by reading it. */
export const maxNameLength = 1_000;

/**
 * Visits the keys of the JSON text of `paths`, as the text has them: without quotes, with JSON's escapes. It stops where the
 * visitor returns false. The text is as recording writes it: compact, each value an object.
 */
export function visitKeysOfPaths(paths: string, visit: (key: string) => boolean): void {
  let start = paths.indexOf('"');
  while (start !== -1) {
    const end = endOfString(paths, start);
    if (!visit(paths.slice(start + 1, end - 1))) return;
    // After the object stands a comma, or the last brace.
    const next = endOfObject(paths, end + 1) + 1;
    start = next < paths.length ? next : -1;
  }
}

/**
 * The name of a path, from its key: places in arrays are written `*`. Undefined for a path that no name stands for: it is
 * long, or no text of the database.
 *
 * @example
 * nameOfKey('items.0.quantity'); // 'items.*.quantity'
 */
export function nameOfKey(key: string): string | undefined {
  if (key.length > 6 * maxNameLength) return undefined;
  const path: string = key.includes('\\') ? JSON.parse(`"${key}"`) : key;
  if (path.length > maxNameLength || path.includes('\0') || !path.isWellFormed()) return undefined;
  return nameOfPath(path);
}

/** The name of a path, or of a text that a query looks for. */
export function nameOfPath(path: string): string {
  return /[0-9]/.test(path) ? path.replaceAll(position, '$1*') : path;
}

/** A segment that is written as a place in an array, after the dot before it, which no backslash escapes. */
const position = /(^|(?<!\\)(?:\\\\)*\.)(?:0|[1-9][0-9]*)(?=\.|$)/g;

/**
 * The number that stands for a name of an entity type in a tenant: 32 bits of a hash. Few names share one, and a query then
 * reads their entries.
 */
export function numberOfPath(tenant: string, entity: string, name: string): number {
  return hash('sha256', `${tenant}\0${entity}\0${name}`, 'buffer').readInt32BE(0);
}

/** The number of the entries of a tenant of which at least one path has no number of its own. */
export function numberOfRest(tenant: string): number {
  return hash('sha256', tenant, 'buffer').readInt32BE(0);
}

/** The position after the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
  }
  throw new Error('a string of paths has no end');
}

/** The position after the object that begins at `start`. */
function endOfObject(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at) - 1;
    else if (code === openBrace) depth += 1;
    else if (code === closeBrace) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  throw new Error('an object of paths has no end');
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
