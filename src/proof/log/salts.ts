import { randomBytes } from 'node:crypto';
import { hashBytes, writeHash } from './sha256.ts';

/**
 * What is known of the salts of an entry: its seed, or a cover, from which the salts of the `shown` fields derive and
 * no others. A cover has the roots of the greatest subtrees in which each field is shown, from left to right, and never
 * the root of the whole tree.
 */
export type KnownSalts =
  | { readonly seed: Buffer }
  | { readonly cover: readonly Buffer[]; readonly shown: readonly boolean[] };

/** A node of the tree of salts: the root of the fields from `first` on, with so many levels below it. */
interface Subtree {
  readonly first: number;
  readonly levels: number;
}

export function newSeed(): Buffer {
  return randomBytes(hashBytes);
}

/** The salts of `fields` fields below a node, one after the other. */
export function saltsBelow(root: Buffer, fields: number, levels = levelsOf(fields)): Buffer {
  let nodes = root;
  for (let left = levels - 1; left >= 0; left -= 1) {
    const count = Math.ceil(fields / 2 ** left);
    const next = Buffer.allocUnsafe(count * hashBytes);
    for (let index = 0; index < count; index += 1) {
      writeChild(nodes, (index >> 1) * hashBytes, index & 1, next, index * hashBytes);
    }
    nodes = next;
  }
  return nodes;
}

/** The cover of the shown fields. Throws a RangeError where one of their salts is unknown. */
export function saltCover(known: KnownSalts, fields: number, shown: readonly boolean[]): Buffer[] {
  const roots = rootsOf(known, fields);
  return subtreesOf(fields, shown).map((subtree) => {
    const root = roots.find(({ first, levels }) => subtree.first >= first && subtree.first < first + 2 ** levels);
    if (root === undefined || root.levels < subtree.levels) throw new RangeError('a salt is not known');
    let node = root.node;
    for (let left = root.levels - 1; left >= subtree.levels; left -= 1) {
      const next = Buffer.allocUnsafe(hashBytes);
      writeChild(node, 0, Math.floor((subtree.first - root.first) / 2 ** left) % 2, next, 0);
      node = next;
    }
    return node;
  });
}

/**
 * The salt of each field; null where it is not known. Throws a RangeError where a cover has too few nodes or too many.
 */
export function saltsOf(known: KnownSalts, fields: number): (Buffer | null)[] {
  const salts = new Array<Buffer | null>(fields).fill(null);
  for (const { first, levels, node } of rootsOf(known, fields)) {
    const count = Math.min(2 ** levels, fields - first);
    const found = saltsBelow(node, count, levels);
    for (let index = 0; index < count; index += 1) {
      salts[first + index] = found.subarray(index * hashBytes, (index + 1) * hashBytes);
    }
  }
  return salts;
}

/** The nodes that are known, with their places. */
function rootsOf(known: KnownSalts, fields: number): (Subtree & { node: Buffer })[] {
  if ('seed' in known) return [{ first: 0, levels: levelsOf(fields), node: known.seed }];
  const places = subtreesOf(fields, known.shown);
  const roots = places.flatMap((place, index) => {
    const node = known.cover[index];
    return node?.length === hashBytes ? [{ ...place, node }] : [];
  });
  if (roots.length !== places.length || roots.length !== known.cover.length) {
    throw new RangeError(`a cover of ${places.length} nodes was expected`);
  }
  return roots;
}

/** The greatest subtrees in which each field is shown, from left to right, without the whole tree. */
function subtreesOf(fields: number, shown: readonly boolean[]): Subtree[] {
  const found: Subtree[] = [];
  for (let first = 0; first < fields; ) {
    let levels = 0;
    if (shown[first] === true) {
      while (levels + 1 < levelsOf(fields) && first % 2 ** (levels + 1) === 0 && areShown(first, levels + 1))
        levels += 1;
      found.push({ first, levels });
    }
    first += 2 ** levels;
  }
  return found;

  function areShown(first: number, levels: number): boolean {
    const end = Math.min(first + 2 ** levels, fields);
    for (let index = first; index < end; index += 1) if (shown[index] !== true) return false;
    return true;
  }
}

/** The least number of levels below the root of a tree with so many leaves. */
function levelsOf(fields: number): number {
  return fields < 2 ? 0 : 32 - Math.clz32(fields - 1);
}

const child = Buffer.alloc(1 + hashBytes);

/** Writes the left (0) or right (1) child of the node at `from` of `nodes` into a buffer. */
function writeChild(nodes: Buffer, from: number, side: number, target: Buffer, at: number): void {
  child[0] = side;
  nodes.copy(child, 1, from, from + hashBytes);
  writeHash(child, target, at);
}
