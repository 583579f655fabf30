import { SharedReading } from '../../../core/fairness/shared-work.ts';
import { requestLimit } from '../../../core/fairness/work.ts';
import { clearOnErasure } from '../../../core/forgetting.ts';
import type { Statements } from '../../../postgres/statements.ts';
import { type Dictionary, extendDictionary } from './dictionary.ts';
import { readNames } from './name-store.ts';

interface Cached {
  readonly reading: SharedReading<Dictionary>;
  /** Set once the names have been read. */
  dictionary: Dictionary | undefined;
  /** In milliseconds of performance.now(). */
  usedAt: number;
}

/** Bytes of all names together in a process that alone serves its port. */
export const maxNameBytes = 256 * 1024 * 1024;

interface DictionaryCacheOptions {
  /** Maximum bytes of all names together; default 256 MB. */
  maxBytes?: number;
  /** Idle milliseconds after which a tenant with more names than this maximum is dropped; default 1 minute. */
  idle?: number;
  /** Maximum milliseconds of a read of names, which holds a connection; default 30 seconds. */
  timeLimit?: number;
}

/** Caches the names of the tenants that were queried last; of one tenant while in use, whatever their size. */
export class DictionaryCache {
  readonly #pool: Statements;
  readonly #maxBytes: number;
  readonly #idle: number;
  readonly #timeLimit: number;
  /** The least recently used tenant comes first. */
  readonly #cached = new Map<string, Cached>();

  constructor(pool: Statements, options: DictionaryCacheOptions = {}) {
    this.#pool = pool;
    this.#maxBytes = options.maxBytes ?? maxNameBytes;
    this.#idle = options.idle ?? 60_000;
    this.#timeLimit = options.timeLimit ?? requestLimit;
    clearOnErasure(this);
  }

  /** Drops the names of all tenants. Reads under way keep using theirs. */
  clear(): void {
    for (const [tenant, cached] of this.#cached) {
      if (cached.dictionary !== undefined) this.#cached.delete(tenant);
    }
  }

  known(tenant: string): Dictionary | undefined {
    const cached = this.#cached.get(tenant);
    if (cached?.dictionary !== undefined) this.#touch(tenant, cached);
    return cached?.dictionary;
  }

  /**
   * The names of a tenant, newer than `outdated`. Callers share a read, which is cancelled when the last one has gone.
   */
  async get(tenant: string, outdated?: Dictionary): Promise<Dictionary> {
    const cached = this.#cached.get(tenant);
    if (cached !== undefined && !cached.reading.isLost) {
      const dictionary = await this.#waitFor(tenant, cached);
      this.#touch(tenant, cached);
      if (dictionary !== outdated) return dictionary;
      // Another call may have started a new read while this call waited.
      const newer = this.#cached.get(tenant);
      if (newer !== undefined && newer !== cached) return await this.#waitFor(tenant, newer);
    }
    return await this.#waitFor(tenant, this.#read(tenant, outdated));
  }

  #read(tenant: string, outdated: Dictionary | undefined): Cached {
    const reading = new SharedReading({ tenant, timeLimit: this.#timeLimit }, async () => {
      const added = await readNames(this.#pool, tenant, outdated);
      begun.dictionary = extendDictionary(outdated, added);
      this.#evict();
      return begun.dictionary;
    });
    const begun: Cached = { reading, dictionary: undefined, usedAt: performance.now() };
    this.#cached.delete(tenant);
    this.#cached.set(tenant, begun);
    return begun;
  }

  async #waitFor(tenant: string, cached: Cached): Promise<Dictionary> {
    if (cached.dictionary !== undefined) return cached.dictionary;
    try {
      return await cached.reading.result();
    } finally {
      if (cached.reading.isLost && this.#cached.get(tenant) === cached) this.#cached.delete(tenant);
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
      if (bytes <= this.#maxBytes) return;
      if (this.#cached.size === 1) this.#dropWhenIdle(tenant, cached);
      else this.#cached.delete(tenant);
      bytes -= bytesOf(cached.dictionary);
    }
  }

  /** The names exceed the maximum: the cache keeps them during use and no longer. */
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
