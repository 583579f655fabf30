/** Paths of which one may lead through another. */
export class TouchedPaths {
  readonly #root = untouched();

  add(keys: readonly string[]): void {
    let path = this.#root;
    for (const key of keys) path = path.below.getOrInsertComputed(key, untouched);
    path.isEnd = true;
  }

  /** The keys of each path, without those that a shorter one of them leads through. */
  get all(): string[][] {
    const found: string[][] = [];
    const open: { path: TouchedPath; keys: string[] }[] = [{ path: this.#root, keys: [] }];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { path, keys } = next;
      if (path.isEnd) found.push(keys);
      else for (const [key, below] of path.below) open.push({ path: below, keys: [...keys, key] });
    }
    return found;
  }

  /** Whether the path, one above it or one below it was added. */
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
