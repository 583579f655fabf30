import type { Statements } from '../../../postgres/statements.ts';
import { projectedText } from '../../../query/json-projection.ts';

/** The names of the paths of a tenant's entries in a snapshot. Array positions are written `*`. */
export interface PathNames {
  readonly names: readonly PathName[];
  /** The number of the entries with a path that has no number of its own; undefined if there is none. */
  readonly rest: number | undefined;
}

export interface PathName {
  readonly number: number;
  readonly entity: string;
  readonly name: string;
  /** Whether another name has the same number. */
  readonly isShared: boolean;
}

export const noPathNames: PathNames = { names: [], rest: undefined };

/** The numbers that do not identify a path: those of names for several paths, and that of the rest. */
export function readNumbers({ names, rest }: PathNames): number[] {
  const several = names.filter(({ name }) => hasPlace(name)).map(({ number }) => number);
  return rest === undefined ? several : [...several, rest];
}

/** The paths that names identify, in the form of the projection. */
export function namedPaths({ names }: PathNames): string[] {
  return [...new Set(names.map(({ name }) => name))].filter((name) => !hasPlace(name)).map(projectedText);
}

/** Whether a name may stand for several paths: one of its segments is an array position. */
export function hasPlace(name: string): boolean {
  return name.includes('*');
}

/** null means any. */
interface PathNameFilter {
  readonly entities: readonly string[] | null;
  /** Patterns of LIKE, of which one accepts the name, or another name with the same number. */
  readonly like: readonly string[] | null;
  /** Only names that share their number. */
  readonly shared?: boolean;
}

/** Reads path names in one statement. A tenant has at most some ten thousand, and most queries match a few. */
export async function readPathNames(
  statements: Statements,
  tenant: string,
  { entities, like, shared = false }: PathNameFilter,
): Promise<PathNames> {
  const { rows } = await statements.query<PathName>({
    text: `select number, entity, name, is_shared as "isShared"
             from change_path_names($1, $2, $3, $4)`,
    values: [tenant, entities, like, shared],
  });
  return {
    names: rows.filter(({ entity }) => entity !== ''),
    rest: rows.find(({ entity }) => entity === '')?.number,
  };
}
