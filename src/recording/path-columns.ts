import { maxNamesOfEntry, nameOfKey, numberOfPath, numberOfRest, visitKeysOfPaths } from './path-names.ts';

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
export interface EntryWithPaths {
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
