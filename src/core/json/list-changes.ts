// The console and the viewer take this file as well: it imports nothing.

/** An element of a list of objects: its members by name. */
export type ListItem<Value> = ReadonlyMap<string, Value>;

/** What became of an element. */
export interface ListRow<Value> {
  /** `changed` if members differ, also where it moved. */
  readonly kind: 'added' | 'removed' | 'changed' | 'moved' | 'same';
  readonly isMoved: boolean;
  /** Its place on each side, from 0. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly before: ListItem<Value> | undefined;
  readonly after: ListItem<Value> | undefined;
  /** The members that differ between its sides. */
  readonly changed: ReadonlySet<string>;
}

/** Members that tell elements apart. */
const keyNames = /^(?:_?id|uuid|guid|key|sku|code)$|(?:Id|ID|[_-]id)$/;

/**
 * Compares two lists of objects. Elements are matched by a member that has another value in each of them, such as `id`,
 * and otherwise by place. `textOf` returns the JSON text of a value. The rows have the order of `after`; those removed
 * stand where they were.
 *
 * @example
 * compareLists([{ sku: 1 }, { sku: 2 }], [{ sku: 2 }], textOf); // removed, same
 */
export function compareLists<Value>(
  before: readonly ListItem<Value>[],
  after: readonly ListItem<Value>[],
  textOf: (value: Value) => string,
): ListRow<Value>[] {
  const key = keyOf(before, after, textOf);
  const partners = key === undefined ? after.map((_, place) => place) : partnersBy(key, before, after);
  const inOrder = longestRise(partners.filter((place) => place !== undefined && place < before.length) as number[]);
  const kept = new Set(partners);
  const rows: ListRow<Value>[] = [];
  let next = 0;
  const removeUntil = (end: number) => {
    for (; next < end; next += 1) {
      const item = before[next];
      if (item !== undefined && !kept.has(next))
        rows.push({ ...nothing, kind: 'removed', from: next, before: item, after: undefined });
    }
  };
  for (const [to, item] of after.entries()) {
    const from = partners[to];
    const was = from === undefined ? undefined : before[from];
    if (from === undefined || was === undefined) {
      rows.push({ ...nothing, kind: 'added', to, before: undefined, after: item });
      continue;
    }
    const isMoved = !inOrder.has(from);
    if (!isMoved) removeUntil(from);
    const changed = changedMembers(was, item, textOf);
    const kind = changed.size > 0 ? 'changed' : isMoved ? 'moved' : 'same';
    rows.push({ kind, isMoved, from, to, before: was, after: item, changed });
  }
  removeUntil(before.length);
  return rows;
}

const nothing = { isMoved: false, from: undefined, to: undefined, changed: new Set<string>() };

/** The names of all members, in the order in which they first occur. */
export function memberNames(items: Iterable<ListItem<unknown> | undefined>): string[] {
  const names = new Set<string>();
  for (const item of items) for (const name of item?.keys() ?? []) names.add(name);
  return [...names];
}

type Key<Value> = (item: ListItem<Value>) => string;

function keyOf<Value>(
  before: readonly ListItem<Value>[],
  after: readonly ListItem<Value>[],
  textOf: (value: Value) => string,
): Key<Value> | undefined {
  const names = [...(before[0] ?? after[0] ?? new Map()).keys()];
  const usual = names.filter((name) => keyNames.test(name));
  for (const name of [...usual, ...names.filter((other) => !usual.includes(other))]) {
    const sides = [before, after].map((side) => textsOf(side, name, textOf));
    const [first, second] = sides;
    if (first === undefined || second === undefined) continue;
    if (usual.includes(name)) return (item) => textOf(item.get(name) as Value);
    // Any text that is different in each element, if most elements keep it.
    const isText = [...first, ...second].every((text) => text.startsWith('"'));
    const shared = [...first].filter((text) => second.has(text)).length;
    if (isText && shared > 0 && shared * 2 >= Math.min(first.size, second.size))
      return (item) => textOf(item.get(name) as Value);
  }
  return undefined;
}

/** The texts of a member; undefined if an element has none, or two have the same one. */
function textsOf<Value>(
  items: readonly ListItem<Value>[],
  name: string,
  textOf: (value: Value) => string,
): Set<string> | undefined {
  const texts = new Set<string>();
  for (const item of items) {
    const value = item.get(name);
    const text = value === undefined ? 'null' : textOf(value);
    if (text === 'null' || text.startsWith('{') || text.startsWith('[') || texts.has(text)) return undefined;
    texts.add(text);
  }
  return texts;
}

/** For each element of `after` the place of its partner in `before`. */
function partnersBy<Value>(
  key: Key<Value>,
  before: readonly ListItem<Value>[],
  after: readonly ListItem<Value>[],
): (number | undefined)[] {
  const places = new Map(before.map((item, place) => [key(item), place]));
  return after.map((item) => places.get(key(item)));
}

function changedMembers<Value>(
  before: ListItem<Value>,
  after: ListItem<Value>,
  textOf: (value: Value) => string,
): ReadonlySet<string> {
  const changed = new Set<string>();
  for (const name of memberNames([before, after])) {
    const [was, is] = [before.get(name), after.get(name)];
    if (was === undefined || is === undefined || textOf(was) !== textOf(is)) changed.add(name);
  }
  return changed;
}

/** The longest run of numbers that rise from left to right, so that as few as possible count as moved. */
function longestRise(numbers: readonly number[]): Set<number> {
  /** At each length, where the run with the lowest end has it. */
  const ends: number[] = [];
  const previous: (number | undefined)[] = [];
  for (const [place, number] of numbers.entries()) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((numbers[ends[middle] ?? 0] ?? 0) < number) low = middle + 1;
      else high = middle;
    }
    previous[place] = ends[low - 1];
    ends[low] = place;
  }
  const run = new Set<number>();
  for (let place = ends.at(-1); place !== undefined; place = previous[place]) run.add(numbers[place] ?? 0);
  return run;
}
