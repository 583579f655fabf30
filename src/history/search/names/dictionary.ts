/** Maximum bytes that are cached for all dictionaries together. */
const maxBytes = 64 * 1024 * 1024;

/** The caches that have matches, the least recently used first. */
const caches = new Set<MatchCache>();
let cachedBytes = 0;

/** Which names of a dictionary a pattern matches, one byte for each name, cached while there is memory for it. */
export class MatchCache {
  readonly #matches = new Map<string, { members: Promise<Uint8Array>; bytes: number }>();

  get(pattern: string): Promise<Uint8Array> | undefined {
    const cached = this.#matches.get(pattern);
    if (cached !== undefined) this.#touch();
    return cached?.members;
  }

  /** `names`: the number of names that the result covers. */
  set(pattern: string, members: Promise<Uint8Array>, names: number): void {
    this.delete(pattern);
    const bytes = names + 2 * pattern.length + 200;
    this.#matches.set(pattern, { members, bytes });
    cachedBytes += bytes;
    this.#touch();
    for (const cache of caches) {
      if (cachedBytes <= maxBytes) return;
      cache.#deleteAllBut(cache === this ? pattern : undefined);
    }
  }

  delete(pattern: string): void {
    const cached = this.#matches.get(pattern);
    if (cached === undefined) return;
    this.#matches.delete(pattern);
    cachedBytes -= cached.bytes;
    if (this.#matches.size === 0) caches.delete(this);
  }

  #touch(): void {
    caches.delete(this);
    caches.add(this);
  }

  #deleteAllBut(spared: string | undefined): void {
    for (const pattern of this.#matches.keys()) if (pattern !== spared) this.delete(pattern);
  }
}

export interface Kind {
  readonly id: number;
  readonly entity: string;
  readonly type: string;
  readonly relatedEntities: readonly string[];
}

/** Who made changes. Everything but the name may be missing. */
export interface Actor {
  readonly id: number;
  readonly name: string;
  readonly actorId?: string | undefined;
  readonly onBehalfOfName?: string | undefined;
  readonly onBehalfOfId?: string | undefined;
}

/**
 * Every kind and every actor of a tenant's history in one snapshot. `since` and `recent` show whether a later snapshot
 * has more names. Names are only ever added, and one that an erasure replaces counts as registered again. So if
 * transactions from `since` on registered the same number of rows as before, these are the same rows.
 */
export interface Dictionary {
  /** Both in ascending order of their ids. */
  readonly kinds: readonly Kind[];
  readonly actors: readonly Actor[];
  readonly kindOf: ById<Kind>;
  readonly actorOf: ById<Actor>;
  readonly since: string;
  readonly recent: number;
  /** Identifies the state of the database when the names were read. Differs after an earlier state was restored. */
  readonly lineage: string;
  readonly bytes: number;
  readonly matched: MatchCache;
}

/** Finds a name by its id, without a table, which would take as much memory as the names. */
interface ById<Named> {
  get(id: number): Named | undefined;
}

export type NamesRead = Pick<Dictionary, 'kinds' | 'actors' | 'since' | 'recent' | 'lineage' | 'bytes'>;

/** Adds newly registered names to a dictionary. The result is in ascending order of the ids, too. */
export function extendDictionary(before: Dictionary | undefined, added: NamesRead): Dictionary {
  const known = before?.lineage === added.lineage ? before : undefined;
  const kinds = known === undefined ? added.kinds : union(known.kinds, known.kindOf, added.kinds);
  const actors = known === undefined ? added.actors : union(known.actors, known.actorOf, added.actors);
  return {
    kinds,
    actors,
    kindOf: byId(kinds),
    actorOf: byId(actors),
    since: added.since,
    recent: added.recent,
    lineage: added.lineage,
    bytes: (known?.bytes ?? 0) + added.bytes,
    matched: new MatchCache(),
  };
}

function union<Named extends { id: number }>(
  known: readonly Named[],
  knownOf: ById<Named>,
  read: readonly Named[],
): readonly Named[] {
  const added = read.filter(({ id }) => knownOf.get(id) === undefined);
  const again = new Map(added.length === read.length ? [] : read.map((named) => [named.id, named]));
  const all = (again.size === 0 ? known : known.map((named) => again.get(named.id) ?? named)).concat(added);
  // A long transaction may register a lower id than the dictionary's last one.
  const inOrder = (known.at(-1)?.id ?? 0) < (added[0]?.id ?? Number.POSITIVE_INFINITY);
  return inOrder ? all : all.sort((a, b) => a.id - b.id);
}

function byId<Named extends { id: number }>(names: readonly Named[]): ById<Named> {
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
