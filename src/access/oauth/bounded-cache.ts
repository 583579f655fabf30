export interface BoundedCache<Value> {
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
}

/**
 * Keeps at least half of `limit` and at most `limit` of the entries used last. It has two generations: an entry that is
 * used moves to the young one. When the young one is full, the old one is dropped.
 */
export function createBoundedCache<Value>(limit: number): BoundedCache<Value> {
  const half = Math.ceil(limit / 2);
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();

  function set(key: string, value: Value): void {
    if (young.size >= half && !young.has(key)) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
  }

  return {
    set,
    get(key) {
      const recent = young.get(key);
      if (recent !== undefined) return recent;
      const aged = old.get(key);
      if (aged !== undefined) set(key, aged);
      return aged;
    },
  };
}
