/** A document as the tests make it: scalars carry the text they are written with. Later members override earlier. */
export type Tree = { text: string } | { elements: Tree[] } | { members: [key: Tree & { text: string }, value: Tree][] };

/** The value of a key or a string. */
export function decoded(tree: { text: string }): string {
  return JSON.parse(tree.text);
}

/** The members of an object by name, the last of each counting. */
export function membersByName(tree: { members: [Tree & { text: string }, Tree][] }) {
  return new Map(tree.members.map(([key, value]) => [decoded(key), { key, value }]));
}

/** JSON text without blanks. */
export function compact(tree: Tree): string {
  if ('text' in tree) return tree.text;
  if ('elements' in tree) return `[${tree.elements.map(compact).join(',')}]`;
  // Any spelling of a duplicate key will do; this writes the last one.
  return `{${[...membersByName(tree).values()].map(({ key, value }) => `${key.text}:${compact(value)}`).join(',')}}`;
}

/** A spelling that equal values share. Numbers must have small exponents here. */
export function canonical(tree: Tree): string {
  if ('elements' in tree) return `[${tree.elements.map(canonical).join(',')}]`;
  if ('members' in tree) {
    const members = [...membersByName(tree)].map(([name, { value }]) => `${JSON.stringify(name)}:${canonical(value)}`);
    return `{${members.sort().join(',')}}`;
  }
  if (tree.text.startsWith('"')) return JSON.stringify(decoded(tree));
  return /^[-0-9]/.test(tree.text) ? canonicalNumber(tree.text) : tree.text;
}

function canonicalNumber(text: string): string {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const scaled = BigInt(whole + fraction) * 10n ** BigInt(1000 + Number(exponent) - fraction.length);
  return scaled === 0n ? '0' : `${sign}${scaled}`;
}

/**
 * The rule of `paths`, sentence by sentence and without regard for cost: the members of the map, each as its JSON
 * text. `path` is undefined for the document itself.
 */
export function referencePaths(before: Tree | undefined, after: Tree | undefined, path?: string): string[] {
  if (before === undefined && after === undefined) return [];
  if (before !== undefined && after !== undefined && canonical(before) === canonical(after)) return [];
  const whole = [memberText(path ?? '', before, after)];
  const present = [before, after].filter((side) => side !== undefined);

  if (present.every((side) => 'members' in side) && !isOneEmptyContainer(present)) {
    const ofBefore = before !== undefined && 'members' in before ? membersByName(before) : new Map<string, never>();
    const ofAfter = after !== undefined && 'members' in after ? membersByName(after) : new Map<string, never>();
    return [...new Set([...ofBefore.keys(), ...ofAfter.keys()])].flatMap((name) => {
      const escaped = name.replaceAll('\\', '\\\\').replaceAll('.', '\\.');
      const below = path === undefined ? escaped : `${path}.${escaped}`;
      return referencePaths(ofBefore.get(name)?.value, ofAfter.get(name)?.value, below);
    });
  }
  if (path !== undefined && present.every((side) => 'elements' in side) && !isOneEmptyContainer(present)) {
    const ofBefore = before !== undefined && 'elements' in before ? before.elements : [];
    const ofAfter = after !== undefined && 'elements' in after ? after.elements : [];
    const positions = [...Array(Math.max(ofBefore.length, ofAfter.length)).keys()];
    const single = positions.flatMap((position) =>
      referencePaths(ofBefore[position], ofAfter[position], `${path}.${position}`),
    );
    return bytesOf(single) < bytesOf(whole) ? single : whole;
  }
  return whole;
}

function isOneEmptyContainer(present: Tree[]): boolean {
  const [only, other] = present;
  return other === undefined && only !== undefined && ['{}', '[]'].includes(compact(only));
}

function memberText(path: string, before: Tree | undefined, after: Tree | undefined): string {
  const sides = [
    ...(before === undefined ? [] : [`"before":${compact(before)}`]),
    ...(after === undefined ? [] : [`"after":${compact(after)}`]),
  ];
  return `${JSON.stringify(path)}:{${sides.join(',')}}`;
}

function bytesOf(members: string[]): number {
  return members.reduce((bytes, member) => bytes + Buffer.byteLength(member), 0);
}
