/** A set of paths that may contain each other. */
export class TouchedPaths {
  readonly #root = untouched();

  add(keys: readonly string[]): void {
    let path = this.#root;
    for (const key of keys) path = path.below.getOrInsertComputed(key, untouched);
    path.isEnd = true;
  }

  /** The keys of each path that is not below a shorter one. */
  get all(): string[][] {
    const result: string[][] = [];
    const open: { path: TouchedPath; keys: string[] }[] = [{ path: this.#root, keys: [] }];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { path, keys } = next;
      if (path.isEnd) result.push(keys);
      else for (const [key, below] of path.below) open.push({ path: below, keys: [...keys, key] });
    }
    return result;
  }

  /** Whether the path, an ancestor or a descendant was added. */
  meets(keys: readonly string[]): boolean {
    let path: TouchedPath | undefined = this.#root;
    for (const key of keys) {
      if (path.isEnd) return true;
      path = path.below.get(key);
      if (path === undefined) return false;
    }
    return true;
  }
}

interface TouchedPath {
  isEnd: boolean;
  below: Map<string, TouchedPath>;
}

function untouched(): TouchedPath {
  return { isEnd: false, below: new Map() };
}
