type Plain = Map<string, Plain> | Plain[] | string | number | null;

/** RFC 6902 in plain form: it copies each value that an operation takes up. For comparison with `applyPatch`. */
export class CopyingPatch {
  #root: Plain;

  constructor(text: string) {
    this.#root = plainOf(text);
  }

  /** Whether the operation can be applied. */
  apply(operation: { op: string; path: string[]; from?: string[]; value?: unknown }): boolean {
    const before = structuredClone(this.#root);
    const { op, path, from = [] } = operation;
    const value = op === 'copy' || op === 'move' ? this.#find(from) : plainOf(JSON.stringify(operation.value ?? null));
    const isInside = op === 'move' && path.length > from.length && from.every((key, level) => key === path[level]);
    const isDone = value !== undefined && !isInside && this.#carryOut(operation, structuredClone(value));
    if (!isDone) this.#root = before;
    return isDone;
  }

  text(): string {
    return textOfPlain(this.#root);
  }

  #carryOut({ op, path, from = [] }: { op: string; path: string[]; from?: string[] }, value: Plain): boolean {
    const found = this.#find(path);
    if (op === 'test') return found !== undefined && sortedText(found) === sortedText(value);
    if (op === 'remove') return path.length > 0 && found !== undefined && this.#remove(path);
    if (op === 'move' && path.join('/') === from.join('/')) return true;
    if (op === 'move') return this.#remove(from) && this.#place(path, value);
    if (op === 'replace' && found === undefined) return false;
    return this.#place(path, value, op === 'replace');
  }

  #remove(path: readonly string[]): boolean {
    const holder = this.#find(path.slice(0, -1));
    const key = path.at(-1) ?? '';
    if (path.length === 0) this.#root = null;
    else if (holder instanceof Map) holder.delete(key);
    else if (Array.isArray(holder)) holder.splice(Number(key), 1);
    return true;
  }

  #place(path: readonly string[], value: Plain, replaces = false): boolean {
    const holder = this.#find(path.slice(0, -1));
    const key = path.at(-1);
    if (key === undefined) {
      this.#root = value;
      return true;
    }
    if (holder instanceof Map) {
      holder.set(key, value);
      return true;
    }
    if (!Array.isArray(holder)) return false;
    const index = key === '-' ? holder.length : /^\d$/.test(key) ? Number(key) : Number.POSITIVE_INFINITY;
    if (index > holder.length) return false;
    holder.splice(index, replaces ? 1 : 0, value);
    return true;
  }

  #find(path: readonly string[]): Plain | undefined {
    let value: Plain | undefined = this.#root;
    for (const key of path) {
      value =
        value instanceof Map
          ? value.get(key)
          : Array.isArray(value) && /^\d$/.test(key)
            ? value[Number(key)]
            : undefined;
    }
    return value;
  }
}

function plainOf(text: string): Plain {
  return JSON.parse(text, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member) ? new Map(Object.entries(member)) : member,
  );
}

function textOfPlain(plain: Plain): string {
  if (Array.isArray(plain)) return `[${plain.map(textOfPlain).join()}]`;
  if (!(plain instanceof Map)) return JSON.stringify(plain);
  return `{${Array.from(plain, ([key, member]) => `${JSON.stringify(key)}:${textOfPlain(member)}`).join()}}`;
}

/** The text with the members of each object in the order of their keys. */
function sortedText(plain: Plain): string {
  if (Array.isArray(plain)) return `[${plain.map(sortedText).join()}]`;
  if (!(plain instanceof Map)) return JSON.stringify(plain);
  return `{${Array.from(plain, ([key, member]) => `${JSON.stringify(key)}:${sortedText(member)}`)
    .sort()
    .join()}}`;
}
