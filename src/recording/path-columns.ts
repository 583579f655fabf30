import { maxNamesOfEntry, nameOfKey, numberOfPath, numberOfRest, visitKeysOfPaths } from './path-names.ts';

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

/** A number, and the place of the last entry that has it. */
interface Numbered {
  readonly number: number;
  entry: number;
}

/** The columns of the entries of a tenant. */
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

  // The rest has no name and belongs to no entity type.
  const registerRest = () => register(rest, '', '');

  function numberOf(entity: string, key: string): Numbered {
    const name = nameOfKey(key);
    return name === undefined ? registerRest() : register(numberOfPath(tenant, entity, name), entity, name);
  }

  function numbersOf({ entity, paths }: EntryWithPaths, entry: number): number[] {
    const known = keysOfEntity.getOrInsertComputed(entity, () => new Map());
    const numbers: number[] = [];
    visitKeysOfPaths(paths, (key) => {
      const numbered = known.getOrInsertComputed(key, () => numberOf(entity, key));
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
