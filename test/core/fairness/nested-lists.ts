/** A list in a list in a list …: so many. */
export function nestedLists(levels: number): unknown[] {
  let lists: unknown[] = [];
  for (let level = 1; level < levels; level += 1) lists = [lists];
  return lists;
}
