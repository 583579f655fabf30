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
  readonly kindOf: ReadonlyMap<number, Kind>;
  readonly actorOf: ReadonlyMap<number, Actor>;
  readonly since: string;
  readonly recent: number;
  /** The database as it was when the names were read; another one where it was put back to an earlier state since. */
  readonly lineage: string;
  /** Which names a pattern matches, found once for each pattern. */
  readonly matched: Map<string, Promise<Uint8Array>>;
  /** What was counted before, by what was selected. */
  readonly counts: Map<string, FoldedCount>;
}

/** How many entries at or after a minute (in milliseconds) the tallies hold, as long as they were folded so often. */
export interface FoldedCount {
  readonly folded: number;
  readonly minute: number;
  readonly folds: number;
}

export type NamesRead = Pick<Dictionary, 'kinds' | 'actors' | 'since' | 'recent' | 'lineage'>;

/** A dictionary with the names that were registered since. */
export function extendDictionary(before: Dictionary | undefined, news: NamesRead): Dictionary {
  const known = before?.lineage === news.lineage ? before : undefined;
  const kinds = union(known?.kinds ?? [], news.kinds);
  const actors = union(known?.actors ?? [], news.actors);
  return {
    kinds,
    actors,
    kindOf: new Map(kinds.map((kind) => [kind.id, kind])),
    actorOf: new Map(actors.map((actor) => [actor.id, actor])),
    since: news.since,
    recent: news.recent,
    lineage: news.lineage,
    matched: new Map(),
    counts: new Map(),
  };
}

function union<Named extends { id: number }>(known: readonly Named[], news: readonly Named[]): Named[] {
  const ids = new Set(known.map((one) => one.id));
  return [...known, ...news.filter((one) => !ids.has(one.id))].sort((one, other) => one.id - other.id);
}
