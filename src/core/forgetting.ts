/** What processes keep in memory of a history, and forget after an erasure. */
const keepers = new Set<() => void>();

/** Registers what forgets something. Returns what ends that. */
export function onForgetting(forget: () => void): () => void {
  keepers.add(forget);
  return () => keepers.delete(forget);
}

/** Forgets everything that can be read again. */
export function forgetAll(): void {
  for (const forget of keepers) forget();
}
