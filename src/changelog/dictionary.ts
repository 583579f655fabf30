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
  readonly kinds: readonly Kind[];
  readonly actors: readonly Actor[];
  readonly kindOf: ReadonlyMap<number, Kind>;
  readonly actorOf: ReadonlyMap<number, Actor>;
  readonly since: string;
  readonly recent: number;
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

export type NamesRead = Pick<Dictionary, 'kinds' | 'actors' | 'since' | 'recent'>;
