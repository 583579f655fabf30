/** Maximum bytes that are cached for all dictionaries together. */
const maxBytes = 64 * 1024 * 1024;

/** The dictionaries with cached matches, the least recently used one first. */
const keepers = new Set<Matches>();
let kept = 0;

/**
 * Which names of a dictionary a pattern matches, one byte for each name. Annals caches the result while there is memory
 * for it.
 */
export class Matches {
  readonly #members = new Map<string, { members: Promise<Uint8Array>; bytes: number }>();

  get(pattern: string): Promise<Uint8Array> | undefined {
    const found = this.#members.get(pattern);
    if (found !== undefined) this.#touch();
    return found?.members;
  }

  /** The number of names that the result covers. */
  set(pattern: string, members: Promise<Uint8Array>, names: number): void {
    this.delete(pattern);
    const bytes = names + 2 * pattern.length + 200;
    this.#members.set(pattern, { members, bytes });
    kept += bytes;
    this.#touch();
    for (const keeper of keepers) {
      if (kept <= maxBytes) return;
      if (keeper === this) this.#forgetAllBut(pattern);
      else keeper.#forgetAllBut(undefined);
    }
  }

  delete(pattern: string): void {
    const found = this.#members.get(pattern);
    if (found === undefined) return;
    this.#members.delete(pattern);
    kept -= found.bytes;
    if (this.#members.size === 0) keepers.delete(this);
  }

  #touch(): void {
    keepers.delete(this);
    keepers.add(this);
  }

  #forgetAllBut(spared: string | undefined): void {
    for (const pattern of this.#members.keys()) if (pattern !== spared) this.delete(pattern);
  }
}

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
 * Every kind and every actor of a tenant's history in one snapshot. `since` and `recent` show whether a later snapshot
 * has more names. Names are only ever added, and one that an erasure replaces counts as registered again. So if transactions from `since` on registered the same number of rows as
 * before, these are the same rows.
 */
export interface Dictionary {
  /** Both in ascending order of their ids. */
  readonly kinds: readonly Kind[];
  readonly actors: readonly Actor[];
  readonly kindOf: Numbered<Kind>;
  readonly actorOf: Numbered<Actor>;
  readonly since: string;
  readonly recent: number;
  /**
   * Identifies the state of the database when the names were read. It changes when somebody restores an earlier state.
   */
  readonly lineage: string;
  /** Approximate memory of the names, in bytes. */
  readonly bytes: number;
  readonly matched: Matches;
}

/** Finds a name by its number. It has no table of its own, which would take as much memory as the names. */
export interface Numbered<Named> {
  get(id: number): Named | undefined;
}

export type NamesRead = Pick<Dictionary, 'kinds' | 'actors' | 'since' | 'recent' | 'lineage' | 'bytes'>;

/** Adds the names that were registered since to a dictionary. The result is in ascending order of the ids, too. */
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
  const again = new Map(added.length === news.length ? [] : news.map((one) => [one.id, one]));
  const all = (again.size === 0 ? known : known.map((one) => again.get(one.id) ?? one)).concat(added);
  // A long transaction may register a lower number than the dictionary's last one.
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

/** The entity types of kinds; null means any. */
export function entitiesOf(kinds: readonly number[] | null, { kindOf }: Dictionary): string[] | null {
  return kinds && [...new Set(kinds.flatMap((kind) => kindOf.get(kind)?.entity ?? []))];
}
