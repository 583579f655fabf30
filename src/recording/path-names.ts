import { hash } from 'node:crypto';

/** Maximum distinct names of an entry. An entry with more is searched by reading it. */
export const maxNamesOfEntry = 1_000;
/** Maximum characters of a name. An entry with a longer one is searched by reading it. */
export const maxNameLength = 1_000;

/**
 * Visits the keys of the JSON text of `paths`, unquoted but with JSON escapes, until the visitor returns false. The
 * text must be compact, with an object for each value, as recording writes it.
 */
function visitKeysOfPaths(paths: string, visit: (key: string) => boolean): void {
  let start = paths.indexOf('"');
  while (start !== -1) {
    const end = endOfString(paths, start);
    if (!visit(paths.slice(start + 1, end - 1))) return;
    // Skips the comma or the closing brace.
    const next = endOfObject(paths, end + 1) + 1;
    start = next < paths.length ? next : -1;
  }
}

/**
 * The name of a path from its key, with array positions as `*`. Undefined if it is too long, or not storable as text.
 *
 * @example
 * nameOfKey('items.0.quantity'); // 'items.*.quantity'
 */
function nameOfKey(key: string): string | undefined {
  if (key.length > 6 * maxNameLength) return undefined;
  const path: string = key.includes('\\') ? JSON.parse(`"${key}"`) : key;
  if (path.length > maxNameLength || path.includes('\0') || !path.isWellFormed()) return undefined;
  return nameOfPath(path);
}

/** The name of a path, or of a path in a query. */
export function nameOfPath(path: string): string {
  return /[0-9]/.test(path) ? path.replaceAll(position, '$1*') : path;
}

/** An array position as a segment, after a dot that is not escaped. */
const position = /(^|(?<!\\)(?:\\\\)*\.)(?:0|[1-9][0-9]*)(?=\.|$)/g;

/** The number of a path name of an entity type in a tenant: a 32-bit hash. On a collision a query reads the entries. */
export function numberOfPath(tenant: string, entity: string, name: string): number {
  return hash('sha256', `${tenant}\0${entity}\0${name}`, 'buffer').readInt32BE(0);
}

/** The number of a tenant's entries with at least one path that has no number of its own. */
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

/** The distinct path names of a batch, and the path numbers of each entry. */
export interface PathColumns {
  numbers: number[];
  entities: string[];
  names: string[];
  /** The number shared by all paths without a number of their own. */
  rest: number;
  /** The distinct numbers of each entry. */
  ofEntries: number[][];
}

/** The parts of an entry that its path numbers depend on. */
interface EntryWithPaths {
  readonly entity: string;
  /** JSON text. */
  readonly paths: string;
}

/** A number, and the index of the last entry that has it. */
interface Numbered {
  readonly number: number;
  entry: number;
}

/** The path columns of a tenant's entries. */
export function pathColumns(tenant: string, entries: readonly EntryWithPaths[]): PathColumns {
  const rest = numberOfRest(tenant);
  const columns: PathColumns = { numbers: [], entities: [], names: [], rest, ofEntries: [] };
  const keysOfEntity = new Map<string, Map<string, Numbered>>();
  const byNumber = new Map<number, Numbered>();
  const named = new Set<string>();

  function register(number: number, entity: string, name: string): Numbered {
    const unique = JSON.stringify([entity, name]);
    if (!named.has(unique)) {
      named.add(unique);
      columns.numbers.push(number);
      columns.entities.push(entity);
      columns.names.push(name);
    }
    return byNumber.getOrInsertComputed(number, () => ({ number, entry: -1 }));
  }

  // The shared number has no name and no entity type.
  const registerRest = () => register(rest, '', '');

  function numberOf(entity: string, key: string): Numbered {
    const name = nameOfKey(key);
    return name === undefined ? registerRest() : register(numberOfPath(tenant, entity, name), entity, name);
  }

  function numbersOf({ entity, paths }: EntryWithPaths, entry: number): number[] {
    const byKey = keysOfEntity.getOrInsertComputed(entity, () => new Map());
    const numbers: number[] = [];
    visitKeysOfPaths(paths, (key) => {
      const numbered = byKey.getOrInsertComputed(key, () => numberOf(entity, key));
      if (numbered.entry !== entry) {
        numbered.entry = entry;
        numbers.push(numbered.number);
      }
      return numbers.length <= maxNamesOfEntry;
    });
    return numbers.length > maxNamesOfEntry ? [registerRest().number] : numbers;
  }

  columns.ofEntries = entries.map(numbersOf);
  return columns;
}
