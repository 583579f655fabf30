interface Keeper {
  /** Drops everything that can be read again. */
  clear(): void;
}

/** What processes keep in memory of a history, and drop after an erasure. */
const keepers = new Set<WeakRef<Keeper>>();
const collected = new FinalizationRegistry<WeakRef<Keeper>>((reference) => keepers.delete(reference));

/** Registers what `forgetAll` clears. It is registered for as long as somebody else uses it. */
export function clearOnErasure(keeper: Keeper): void {
  const reference = new WeakRef(keeper);
  keepers.add(reference);
  collected.register(keeper, reference);
}

/** Clears everything that is registered. */
export function forgetAll(): void {
  for (const reference of keepers) reference.deref()?.clear();
}
