import type { Statements } from '../../postgres/statements.ts';
import { projectedText } from '../../query/json-projection.ts';

/** The names of the paths of a tenant's entries, in a snapshot. Places in arrays are written `*`. */
export interface PathNames {
  readonly names: readonly PathName[];
  /** The number of the entries with a path that has no number of its own; undefined if there is none. */
  readonly rest: number | undefined;
  /** Entries of this moment or before may have no numbers yet, in milliseconds since 1970; undefined if all have. */
  readonly unnumberedTo: number | undefined;
}

export interface PathName {
  readonly number: number;
  readonly entity: string;
  readonly name: string;
}

export const noPathNames: PathNames = { names: [], rest: undefined, unnumberedTo: undefined };

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

/** Reads the names of the paths of some entity types; null means any. A tenant has some ten thousand at most. */
export async function readPathNames(
  statements: Statements,
  tenant: string,
  entities: readonly string[] | null,
): Promise<PathNames> {
  const backlog = await statements.query<{ at: number }>({
    text: 'select at from change_path_backlog where tenant = $1',
    values: [tenant],
  });
  const { rows } = await statements.query<PathName>({
    text: `select distinct number, entity, name from change_path
             where tenant = $1 and ($2::text[] is null or entity = any ($2) or entity = '')`,
    values: [tenant, entities],
  });
  return {
    names: rows.filter(({ entity }) => entity !== ''),
    rest: rows.find(({ entity }) => entity === '')?.number,
    unnumberedTo: backlog.rows[0]?.at,
  };
}
