/** Runs work of the same name one after another, in the order it was asked for. */
export type InLine = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

export function createLine(): InLine {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    const before = last.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}
