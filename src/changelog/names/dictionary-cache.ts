import { unlessAborted } from '../../concurrency/deadline.ts';
import { currentWork, doWork, requestLimit } from '../../concurrency/work.ts';
import type { Statements } from '../../db/statements.ts';
import { Stop } from '../../stop-signal.ts';
import { type Dictionary, extendDictionary } from './dictionary.ts';
import { readNames } from './name-store.ts';

interface Cached {
  reading: Promise<Dictionary>;
  /** Ends the reading. */
  readonly abandoned: Stop;
  /** How many callers wait for it. */
  waiting: number;
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

  /**
   * The names of a tenant, at least as new as `outdated` is not. Several callers wait for one reading; it ends in the
   * database when the last of them has gone.
   */
  async get(tenant: string, outdated?: Dictionary): Promise<Dictionary> {
    const cached = this.#cached.get(tenant);
    if (cached !== undefined) {
      const dictionary = await this.#waitFor(tenant, cached);
      this.#touch(tenant, cached);
      if (dictionary !== outdated) return dictionary;
      // Another call may have begun to read them again while this one waited.
      const newer = this.#cached.get(tenant);
      if (newer !== undefined && newer !== cached) return await this.#waitFor(tenant, newer);
    }
    return await this.#waitFor(tenant, this.#read(tenant, outdated));
  }

  #read(tenant: string, outdated: Dictionary | undefined): Cached {
    const abandoned = new Stop();
    const options = { tenant, timeLimit: this.#timeLimit, signal: abandoned };
    const reading = doWork(options, () => readNames(this.#pool, tenant, outdated)).then(
      (news) => {
        begun.dictionary = extendDictionary(outdated, news);
        this.#evict();
        return begun.dictionary;
      },
      (error: unknown) => {
        this.#forget(tenant, begun);
        throw error;
      },
    );
    const begun: Cached = { reading, abandoned, waiting: 0, dictionary: undefined, usedAt: performance.now() };
    this.#cached.delete(tenant);
    this.#cached.set(tenant, begun);
    return begun;
  }

  async #waitFor(tenant: string, cached: Cached): Promise<Dictionary> {
    if (cached.dictionary !== undefined) return cached.dictionary;
    cached.waiting += 1;
    try {
      return await unlessAborted(cached.reading, currentWork()?.signal);
    } finally {
      cached.waiting -= 1;
      if (cached.waiting === 0 && cached.dictionary === undefined) {
        this.#forget(tenant, cached);
        cached.reading.catch(() => {});
        cached.abandoned.abort(new Error('nobody waits for the names any more'));
      }
    }
  }

  #forget(tenant: string, cached: Cached): void {
    if (this.#cached.get(tenant) === cached) this.#cached.delete(tenant);
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
