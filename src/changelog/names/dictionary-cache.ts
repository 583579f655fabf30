import { doWork, requestLimit } from '../../concurrency/work.ts';
import type { Statements } from '../../db/statements.ts';
import { type Dictionary, extendDictionary } from './dictionary.ts';
import { readNames } from './name-store.ts';

interface Cached {
  reading: Promise<Dictionary>;
  /** Once it has been read. */
  dictionary: Dictionary | undefined;
  /** In milliseconds of performance.now(). */
  usedAt: number;
}

export interface DictionaryCacheOptions {
  /** Bytes of all names together; 256 MB unless told. */
  most?: number;
  /** Milliseconds after which a tenant whose names alone are more than that is let go; a minute unless told. */
  idle?: number;
  /** Milliseconds that names may take to be read; 30 seconds unless told. Others wait for the connection. */
  timeLimit?: number;
}

/** Keeps the names of the tenants that were asked last. Those of one tenant are kept while it is asked, however many. */
export class DictionaryCache {
  readonly #pool: Statements;
  readonly #most: number;
  readonly #idle: number;
  readonly #timeLimit: number;
  /** The one that was asked longest ago first. */
  readonly #cached = new Map<string, Cached>();

  constructor(pool: Statements, options: DictionaryCacheOptions = {}) {
    this.#pool = pool;
    this.#most = options.most ?? 256 * 1024 * 1024;
    this.#idle = options.idle ?? 60_000;
    this.#timeLimit = options.timeLimit ?? requestLimit;
  }

  /** The names of a tenant where they are known at once. */
  known(tenant: string): Dictionary | undefined {
    const cached = this.#cached.get(tenant);
    if (cached?.dictionary !== undefined) this.#touch(tenant, cached);
    return cached?.dictionary;
  }

  /** The names of a tenant, at least as new as `outdated` is not. */
  async get(tenant: string, outdated?: Dictionary): Promise<Dictionary> {
    const cached = this.#cached.get(tenant);
    if (cached !== undefined) {
      const dictionary = await cached.reading;
      this.#touch(tenant, cached);
      if (dictionary !== outdated) return dictionary;
      // Another call may have begun to read them again while this one waited.
      const newer = this.#cached.get(tenant);
      if (newer !== undefined && newer !== cached) return await newer.reading;
    }
    // Several requests wait for it: it goes on where the first of them has gone.
    const read = () => readNames(this.#pool, tenant, outdated);
    const reading = doWork({ tenant, timeLimit: this.#timeLimit }, read).then((news) =>
      extendDictionary(outdated, news),
    );
    const begun: Cached = { reading, dictionary: undefined, usedAt: performance.now() };
    this.#cached.delete(tenant);
    this.#cached.set(tenant, begun);
    try {
      begun.dictionary = await reading;
      this.#evict();
      return begun.dictionary;
    } catch (error) {
      if (this.#cached.get(tenant) === begun) this.#cached.delete(tenant);
      throw error;
    }
  }

  #touch(tenant: string, cached: Cached): void {
    if (this.#cached.get(tenant) !== cached) return;
    cached.usedAt = performance.now();
    this.#cached.delete(tenant);
    this.#cached.set(tenant, cached);
  }

  #evict(): void {
    let bytes = this.#cached.values().reduce((sum, { dictionary }) => sum + bytesOf(dictionary), 0);
    for (const [tenant, cached] of this.#cached) {
      if (bytes <= this.#most) return;
      if (this.#cached.size === 1) this.#dropWhenIdle(tenant, cached);
      else this.#cached.delete(tenant);
      bytes -= bytesOf(cached.dictionary);
    }
  }

  /** It is more than there is room for: kept while it is asked, and no longer. */
  #dropWhenIdle(tenant: string, cached: Cached): void {
    const look = () => {
      if (this.#cached.get(tenant) !== cached) return;
      if (performance.now() - cached.usedAt >= this.#idle) this.#cached.delete(tenant);
      else setTimeout(look, this.#idle).unref();
    };
    setTimeout(look, this.#idle).unref();
  }
}

function bytesOf(dictionary: Dictionary | undefined): number {
  if (dictionary === undefined) return 0;
  return dictionary.bytes + 100 * dictionary.kinds.length;
}
