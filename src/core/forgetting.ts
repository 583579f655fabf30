interface Cache {
  /** Drops everything that can be read again. */
  clear(): void;
}

/** Caches of a history, which an erasure clears. Weak references do not keep a cache alive. */
const caches = new Set<WeakRef<Cache>>();
const collected = new FinalizationRegistry<WeakRef<Cache>>((reference) => caches.delete(reference));

/** Registers a cache for `forgetAll`. */
export function clearOnErasure(cache: Cache): void {
  const reference = new WeakRef(cache);
  caches.add(reference);
  collected.register(cache, reference);
}

/** Clears all registered caches. */
export function forgetAll(): void {
  for (const reference of caches) reference.deref()?.clear();
}
