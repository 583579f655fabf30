import type { Statements } from '../../../postgres/statements.ts';
import { projectedText } from '../../../query/json-projection.ts';

/** The names of the paths of a tenant's entries, in a snapshot. Places in arrays are written `*`. */
export interface PathNames {
  readonly names: readonly PathName[];
  /** The number of the entries with a path that has no number of its own; undefined if there is none. */
  readonly rest: number | undefined;
}

export interface PathName {
  readonly number: number;
  readonly entity: string;
  readonly name: string;
  /** Whether another name has the number too, so that it does not tell which one an entry has. */
  readonly isShared: boolean;
}

export const noPathNames: PathNames = { names: [], rest: undefined };

/** The numbers of the entries whose paths only a read tells: those of names for several paths, and that of the rest. */
export function readNumbers({ names, rest }: PathNames): number[] {
  const several = names.filter(({ name }) => hasPlace(name)).map(({ number }) => number);
  return rest === undefined ? several : [...several, rest];
}

/** The paths that names tell, in the form of the projection. */
export function namedPaths({ names }: PathNames): string[] {
  return [...new Set(names.map(({ name }) => name))].filter((name) => !hasPlace(name)).map(projectedText);
}

/** Whether a name stands for several paths, or may: one of its segments is a place in an array. */
export function hasPlace(name: string): boolean {
  return name.includes('*');
}

/** Which names of paths are read; null means any. */
export interface PathNameFilter {
  readonly entities: readonly string[] | null;
  /** Patterns of LIKE, of which one accepts the name, or another name with the same number. */
  readonly like: readonly string[] | null;
  /** Only those whose numbers do not tell them. */
  readonly shared?: boolean;
}

/** Reads names of paths in one statement. A tenant has some ten thousand at most, and a query mostly means a few. */
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
