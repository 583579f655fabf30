import type pg from 'pg';
import { type Dictionary, extendDictionary } from './dictionary.ts';
import { readNames } from './store.ts';

const mostNames = 2_000_000;

/** Keeps the dictionaries of the tenants asked last, up to some two million names in all. */
export class DictionaryCache {
  readonly #pool: pg.Pool;
  readonly #dictionaries = new Map<string, Promise<Dictionary>>();
  readonly #sizes = new Map<string, number>();
  /** Those of the promises that are kept. */
  readonly #known = new Map<string, Dictionary>();

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** The names of a tenant where they are known at once. */
  known(tenant: string): Dictionary | undefined {
    const known = this.#known.get(tenant);
    if (known !== undefined) this.#touch(tenant, this.#dictionaries.get(tenant));
    return known;
  }

  /** The names of a tenant, at least as new as `outdated` is not. */
  async get(tenant: string, outdated?: Dictionary): Promise<Dictionary> {
    const cached = this.#dictionaries.get(tenant);
    if (cached !== undefined) {
      const dictionary = await cached;
      this.#touch(tenant, cached);
      if (dictionary !== outdated) return dictionary;
      // Another call may have begun to read them again while this one waited.
      const newer = this.#dictionaries.get(tenant);
      if (newer !== undefined && newer !== cached) return await newer;
    }
    const reading = readNames(this.#pool, tenant, outdated).then((news) => extendDictionary(outdated, news));
    this.#dictionaries.set(tenant, reading);
    try {
      const dictionary = await reading;
      if (this.#dictionaries.get(tenant) === reading) this.#known.set(tenant, dictionary);
      this.#sizes.set(tenant, dictionary.kinds.length + dictionary.actors.length);
      this.#evict();
      return dictionary;
    } catch (error) {
      if (this.#dictionaries.get(tenant) === reading) {
        this.#dictionaries.delete(tenant);
        this.#known.delete(tenant);
      }
      throw error;
    }
  }

  #touch(tenant: string, cached: Promise<Dictionary> | undefined): void {
    if (cached === undefined || this.#dictionaries.get(tenant) !== cached) return;
    this.#dictionaries.delete(tenant);
    this.#dictionaries.set(tenant, cached);
  }

  #evict(): void {
    let names = this.#sizes.values().reduce((sum, size) => sum + size, 0);
    for (const tenant of this.#dictionaries.keys()) {
      if (names <= mostNames || this.#dictionaries.size === 1) return;
      names -= this.#sizes.get(tenant) ?? 0;
      this.#dictionaries.delete(tenant);
      this.#known.delete(tenant);
      this.#sizes.delete(tenant);
    }
  }
}
