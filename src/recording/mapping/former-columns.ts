import type { PathPattern } from '../../core/path-pattern.ts';
import type { Row, RowChange } from './row-change.ts';

/** Former columns of a table, as the mapping names them. */
export interface FormerColumns {
  /** The last name of each column. */
  readonly names: ReadonlyMap<string, string>;
  /** Last names of columns that were dropped. */
  readonly dropped: ReadonlySet<string>;
}

export const noFormer: FormerColumns = { names: new Map(), dropped: new Set() };

/** Resolves each column to its last name; null: dropped. Returns a name that is part of a cycle, if there is one. */
export function readFormer(columns: Readonly<Record<string, string | null>>): FormerColumns | string {
  const renamed = new Map(Object.entries(columns));
  const names = new Map<string, string>();
  for (const column of renamed.keys()) {
    const seen = [column];
    for (let next = renamed.get(column); typeof next === 'string'; next = renamed.get(next)) {
      if (seen.includes(next)) return next;
      seen.push(next);
    }
    names.set(column, seen.at(-1) ?? column);
  }
  const dropped = [...names.values()].filter((name) => renamed.get(name) === null);
  return { names, dropped: new Set(dropped) };
}

/** The current name of a column, or the last name of a dropped one. */
export function nameToday({ names }: FormerColumns, column: string): string {
  return names.get(column) ?? column;
}

/** All names of a column, current and former. */
export function namesOf(former: FormerColumns, column: string): string[] {
  const today = nameToday(former, column);
  const earlier = [...former.names].filter(([name, last]) => last === today && name !== today);
  return [today, ...earlier.map(([name]) => name)];
}

/** The patterns for all names of their columns. */
export function underAllNames(patterns: readonly PathPattern[], former: FormerColumns): PathPattern[] {
  return patterns.flatMap((pattern) => {
    const [column, ...rest] = pattern.keys;
    if (column === undefined || column === null) return [pattern];
    return namesOf(former, column).map((name) => {
      const keys = [name, ...rest];
      return name === column ? pattern : { text: textOf(keys), keys };
    });
  });
}

/** The pattern with the current name of its column. */
export function patternToday(pattern: PathPattern, former: FormerColumns): PathPattern {
  return underAllNames([pattern], former)[0] ?? pattern;
}

/** An old row with current column names. If the row has the current name too, the former one is now another column. */
export function rowToday<Sides extends Pick<RowChange, 'before' | 'after' | 'values'>>(
  former: FormerColumns,
  row: Sides,
): Sides {
  if (former.names.size === 0) return row;
  const { before, after, values } = row;
  const renamed = (column: string) => {
    const today = nameToday(former, column);
    return before?.has(today) === true || after?.has(today) === true ? column : today;
  };
  const side = (columns: Row | undefined): Row | undefined =>
    columns && new Map([...columns].map(([column, value]) => [renamed(column), value]));
  return {
    ...row,
    before: side(before),
    after: side(after),
    values: values?.map(({ keys: [column = '', ...rest], ...value }) => ({
      ...value,
      keys: [renamed(column), ...rest],
    })),
  };
}

function textOf(keys: PathPattern['keys']): string {
  return keys.map((key) => key?.replace(/[.\\]|^\*$/g, '\\$&') ?? '*').join('.');
}
