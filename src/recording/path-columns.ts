import { keysOfPaths, maxNamesOfEntry, nameOfKey, numberOfPath, numberOfRest } from './path-names.ts';

/** The names of the paths of a batch, each once, and the numbers of those of each entry. */
export interface PathColumns {
  numbers: number[];
  entities: string[];
  names: string[];
  /** The number of the entries with a path that has no number of its own. */
  rest: number;
  /** The numbers of each entry, each once. */
  ofEntries: number[][];
}

/** An entry as far as its paths are concerned. */
export interface EntryWithPaths {
  readonly entity: string;
  /** JSON text. */
  readonly paths: string;
}

/** The columns of the entries of a tenant. */
export function pathColumns(tenant: string, entries: readonly EntryWithPaths[]): PathColumns {
  const rest = numberOfRest(tenant);
  const columns: PathColumns = { numbers: [], entities: [], names: [], rest, ofEntries: [] };
  const numbersOfEntity = new Map<string, Map<string, number>>();
  const named = new Set<string>();

  function register(number: number, entity: string, name: string): number {
    const unique = JSON.stringify([entity, name]);
    if (!named.has(unique)) {
      named.add(unique);
      columns.numbers.push(number);
      columns.entities.push(entity);
      columns.names.push(name);
    }
    return number;
  }

  // The rest has no name and belongs to no entity type.
  const registerRest = () => register(rest, '', '');

  function numberOf(entity: string, key: string): number {
    const name = nameOfKey(key);
    return name === undefined ? registerRest() : register(numberOfPath(tenant, entity, name), entity, name);
  }

  function numbersOf({ entity, paths }: EntryWithPaths): number[] {
    const known = numbersOfEntity.get(entity) ?? new Map<string, number>();
    numbersOfEntity.set(entity, known);
    const numbers = new Set<number>();
    for (const key of keysOfPaths(paths)) {
      const number = known.get(key) ?? numberOf(entity, key);
      known.set(key, number);
      numbers.add(number);
      if (numbers.size > maxNamesOfEntry) return [registerRest()];
    }
    return [...numbers];
  }

  columns.ofEntries = entries.map(numbersOf);
  return columns;
}
