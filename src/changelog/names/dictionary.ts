import { Matches } from './matches.ts';

export interface Kind {
  readonly id: number;
  readonly entity: string;
  readonly type: string;
  readonly relatedEntities: readonly string[];
}

export interface Actor {
  readonly id: number;
  readonly name: string;
}

/**
 * Every kind and every actor that a tenant's history has, as of some snapshot. `since` and `recent` tell whether a
 * later snapshot knows more: names are only ever added, so where as many rows as before were registered by
 * transactions from `since` on, they are the same rows.
 */
export interface Dictionary {
  /** Both in ascending order of their ids. */
  readonly kinds: readonly Kind[];
  readonly actors: readonly Actor[];
  readonly kindOf: Numbered<Kind>;
  readonly actorOf: Numbered<Actor>;
  readonly since: string;
  readonly recent: number;
  /** The database as it was when the names were read; another one where it was put back to an earlier state since. */
  readonly lineage: string;
  /** What the names take in memory, more or less. */
  readonly bytes: number;
  readonly matched: Matches;
}

/** Finds a name by its number; without a table of its own, which would take as much memory as the names. */
export interface Numbered<Named> {
  get(id: number): Named | undefined;
}

export type NamesRead = Pick<Dictionary, 'kinds' | 'actors' | 'since' | 'recent' | 'lineage' | 'bytes'>;

/** A dictionary with the names that were registered since; those are in ascending order of their ids, too. */
export function extendDictionary(before: Dictionary | undefined, news: NamesRead): Dictionary {
  const known = before?.lineage === news.lineage ? before : undefined;
  const kinds = known === undefined ? news.kinds : union(known.kinds, known.kindOf, news.kinds);
  const actors = known === undefined ? news.actors : union(known.actors, known.actorOf, news.actors);
  return {
    kinds,
    actors,
    kindOf: numbered(kinds),
    actorOf: numbered(actors),
    since: news.since,
    recent: news.recent,
    lineage: news.lineage,
    bytes: (known?.bytes ?? 0) + news.bytes,
    matched: new Matches(),
  };
}

function union<Named extends { id: number }>(
  known: readonly Named[],
  knownOf: Numbered<Named>,
  news: readonly Named[],
): readonly Named[] {
  const added = news.filter(({ id }) => knownOf.get(id) === undefined);
  const all = known.concat(added);
  // A transaction that was open for long may register a lower number than there was.
  const inOrder = (known.at(-1)?.id ?? 0) < (added[0]?.id ?? Number.POSITIVE_INFINITY);
  return inOrder ? all : all.sort((one, other) => one.id - other.id);
}

function numbered<Named extends { id: number }>(names: readonly Named[]): Numbered<Named> {
  return {
    get(id) {
      let low = 0;
      let high = names.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((names[middle]?.id ?? 0) < id) low = middle + 1;
        else high = middle;
      }
      const found = names[low];
      return found?.id === id ? found : undefined;
    },
  };
}
