import type { Random } from './random.ts';

/** What a tally can tell of an entry, and where it stands. */
export interface Entry {
  at: number;
  sequence: number;
  kind: number;
  actor: number;
}

/** As the functions of the database want a selection: actors [0] are any, kinds [0] any by any actor, else [] any. */
export interface Sets {
  actors: number[];
  kinds: number[];
}

function someItems<Item>(random: Random, items: readonly Item[]): Item[] {
  const share = random.pick([0.05, 0.3, 0.7, 1]);
  return items.filter(() => random.next() < share);
}

/** Selections of every shape, no two of which share an entry. */
export function randomSelections(random: Random, kinds: readonly number[], actors: readonly number[]): Sets[] {
  const selections: Sets[] = [];
  const add = (some: number[], of: number[]) => {
    if (some.length > 0 && (of.length > 0 || some[0] !== 0)) selections.push({ actors: some, kinds: of });
  };
  switch (random.below(4)) {
    case 0:
      add([0], [0]);
      break;
    case 1:
      add([0], someItems(random, kinds));
      break;
    case 2:
      add(someItems(random, actors), []);
      break;
    default: {
      const left = [...kinds];
      while (left.length > 0) {
        const group = left.splice(0, 1 + random.below(left.length));
        const shape = random.below(3);
        if (shape === 0) add([0], group);
        if (shape === 1) add(someItems(random, actors), group);
      }
    }
  }
  return selections;
}

export function isSelected(selections: readonly Sets[]): (entry: Entry) => boolean {
  return (entry) =>
    selections.some(({ actors, kinds }) => {
      if (actors[0] !== 0 && !actors.includes(entry.actor)) return false;
      return kinds.length === 0 || kinds[0] === 0 || kinds.includes(entry.kind);
    });
}

export function columnsOf(selections: readonly Sets[]): unknown[] {
  return [
    selections.map(({ actors }) => `{${actors.join(',')}}`),
    selections.map(({ kinds }) => `{${kinds.join(',')}}`),
  ];
}

const second = 1_000;
const minute = 60_000;
const hour = 3_600_000;
const day = 86_400_000;

/** Bounds that are hard: of cells, of entries, and one beside them. */
export function randomBound(random: Random, entries: readonly Entry[]): number {
  const { at } = random.pick(entries);
  const cell = random.pick([1, second, minute, hour, day, 32 * day, 1024 * day]);
  return Math.max(0, Math.floor(at / cell) * cell + random.pick([0, 0, 1, -1, cell]));
}
