import { type RawBuilder, sql } from 'kysely';
import type { PathPattern } from '../../core/path-pattern.ts';
import { projectedText } from '../../query/json-projection.ts';
import { keysOfPath } from '../../recording/rebuild/entry-changes.ts';

/** Arrays in each other that a term on values looks into where paths are hidden. What is in more of them counts as masked. */
export const maxHiddenLevels = 100;

/** The values `sides` of a path as a query may ask for them, where some paths are hidden. */
export function hiddenSides(
  path: RawBuilder<unknown>,
  sides: RawBuilder<unknown>,
  hide: readonly PathPattern[],
): RawBuilder<unknown> {
  return sql`change_hidden(${path}, ${sides}, ${hiddenExpression(hide)}, ${maxHiddenLevels}::integer)`;
}

/**
 * Whether a pattern may hide a path, or a value in it. False is sure: the first key of no pattern is one that the path begins with, where keys that may
 * be places count as left out.
 */
export function mayHide(hide: readonly PathPattern[], path: string): boolean {
  const keys = keysOfPath(path);
  const named = keys.findIndex((key) => !/^[0-9]*$/.test(key));
  if (named === -1) return true;
  const begins = keys.slice(0, named + 1);
  return hide.some(({ keys: [first = null] }) => first === null || begins.includes(first));
}

/**
 * A regular expression of PostgreSQL that accepts the paths of entries that are hidden, and those beneath them. A key of
 * digits may be a place in an array, where a pattern goes on in each element (recording/mapping/apply-rules.ts). A document that is no
 * object has the path "".
 */
export function hiddenExpression(hide: readonly PathPattern[]): string {
  const patterns = hide.map(({ keys }) =>
    keys.map((key) => (key === null ? anyKey : literal(key))).join(`\\.${places}`),
  );
  return `^\\.?${places}(?:${patterns.join('|')})(?:\\.|$)`;
}

const anyKey = '(?:[^.\\\\]|\\\\.)*';
const places = '(?:[0-9]+\\.)*';

/** A key as it stands in a path: a dot and a backslash have a backslash before them. */
function literal(key: string): string {
  return projectedText(key.replace(/[.\\]/g, '\\$&')).replace(/[\\^$.[\]|()*+?{}]/g, '\\$&');
}
