/** Runs work of the same key one at a time, in the order of the calls. Rejects with the error that the work throws. */
export type KeyedMutex = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * @example
 * const oneAtATime = createKeyedMutex();
 * const place = await oneAtATime(sessionId, () => takePlace(sessionId));
 */
export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (last.get(key) === mine) last.delete(key);
    }
  };
}
