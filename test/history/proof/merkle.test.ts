import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  consistencyRanges,
  emptyRoot,
  hashLeaf,
  hashOfRange,
  inclusionRanges,
  isConsistent,
  MerkleFold,
  rootFromInclusion,
  rootOf,
} from '../../../src/proof/log/merkle.ts';
import { hashesOf, nodesOfTiles, tileWidth, widthOfTile } from '../../../src/proof/log/tiles.ts';

const sha256 = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();

/** The root as RFC 6962, section 2.1 defines it, independent of the code under test. */
function plainRoot(leaves: readonly Buffer[]): Buffer {
  const [first] = leaves;
  if (first === undefined) return sha256();
  if (leaves.length === 1) return sha256(Buffer.from([0]), first);
  const split = 2 ** Math.floor(Math.log2(leaves.length - 1));
  return sha256(Buffer.from([1]), plainRoot(leaves.slice(0, split)), plainRoot(leaves.slice(split)));
}

const leavesOf = (count: number) => Array.from({ length: count }, (_, place) => Buffer.from(`leaf ${place}`));

/** Reads complete subtrees from the tiles of a tree with at most 600 leaves. */
function nodesOf(leaves: readonly Buffer[]) {
  const hashes = leaves.map((leaf) => hashLeaf(leaf));
  return nodesOfTiles(leaves.length, async ({ level, index, width }) => {
    expect(width).toBe(widthOfTile(level, index, leaves.length));
    const places = Array.from({ length: width }, (_, place) => index * tileWidth + place);
    return Buffer.concat(
      places.map((place) =>
        level === 0 ? (hashes[place] ?? emptyRoot) : rootOf(hashes.slice(place * tileWidth, (place + 1) * tileWidth)),
      ),
    );
  });
}

test.each([
  // The usual test trees for implementations of RFC 6962.
  [0, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  [1, '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d'],
  [2, 'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125'],
  [3, 'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77'],
  [5, '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4'],
  [8, '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328'],
])('the root of the known tree of %i leaves', (size, root) => {
  const leaves = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
  expect(rootOf(leaves.slice(0, size).map((leaf) => hashLeaf(Buffer.from(leaf, 'hex')))).toString('hex')).toBe(root);
});

test('a fold has the root of every tree it passes', () => {
  const leaves = leavesOf(70);
  const fold = new MerkleFold();
  for (const [place, leaf] of leaves.entries()) {
    fold.add(hashLeaf(leaf));
    expect(fold.root()).toEqual(plainRoot(leaves.slice(0, place + 1)));
  }
});

test('each inclusion proof yields the root, and fails for another leaf, index or size', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 600 }), fc.nat(), fc.nat(), async (size, seed, wrong) => {
      const leaves = leavesOf(size);
      const index = seed % size;
      const read = nodesOf(leaves);
      const root = plainRoot(leaves);
      const proof = await Promise.all(inclusionRanges(index, size).map((range) => hashOfRange(range, read)));
      const leafHash = hashLeaf(leaves[index] ?? '');
      expect(rootFromInclusion(leafHash, index, size, proof)).toEqual(root);
      expect(rootFromInclusion(hashLeaf('another'), index, size, proof)).not.toEqual(root);
      if (wrong % size !== index) expect(rootFromInclusion(leafHash, wrong % size, size, proof)).not.toEqual(root);
      expect(rootFromInclusion(leafHash, index, size, [...proof, root])).toBeUndefined();
      expect(rootFromInclusion(leafHash, size, size, proof)).toBeUndefined();
      if (proof.length > 0) {
        const broken = proof.with(wrong % proof.length, hashLeaf('broken'));
        expect(rootFromInclusion(leafHash, index, size, broken)).not.toEqual(root);
      }
    }),
    { numRuns: 40 },
  );
});

test('each consistency proof leads from one root to the other, and fails for another tree', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 600 }), fc.nat(), fc.nat(), async (size, seed, wrong) => {
      const leaves = leavesOf(size);
      const oldSize = 1 + (seed % size);
      const [old, now] = [
        { size: oldSize, root: plainRoot(leaves.slice(0, oldSize)) },
        { size, root: plainRoot(leaves) },
      ];
      const read = nodesOf(leaves);
      const proof = await Promise.all(consistencyRanges(oldSize, size).map((range) => hashOfRange(range, read)));
      expect(isConsistent(old, now, proof)).toBe(true);
      expect(isConsistent({ ...old, root: hashLeaf('another') }, now, proof)).toBe(false);
      expect(isConsistent(old, { ...now, root: hashLeaf('another') }, proof)).toBe(false);
      expect(isConsistent(old, now, [...proof, now.root])).toBe(false);
      if (proof.length > 0) {
        expect(isConsistent(old, now, proof.with(wrong % proof.length, hashLeaf('broken')))).toBe(false);
        expect(isConsistent(old, now, proof.slice(1))).toBe(false);
      }
    }),
    { numRuns: 40 },
  );
});

test('all pairs of small trees have a consistency proof', async () => {
  const leaves = leavesOf(20);
  for (let size = 1; size <= leaves.length; size += 1) {
    const read = nodesOf(leaves.slice(0, size));
    for (let oldSize = 1; oldSize <= size; oldSize += 1) {
      const proof = await Promise.all(consistencyRanges(oldSize, size).map((range) => hashOfRange(range, read)));
      const root = (count: number) => plainRoot(leaves.slice(0, count));
      expect(isConsistent({ size: oldSize, root: root(oldSize) }, { size, root: root(size) }, proof)).toBe(true);
    }
  }
});

test('the empty tree is a prefix of each tree, and no larger tree is a prefix of a smaller one', () => {
  const now = { size: 3, root: plainRoot(leavesOf(3)) };
  expect(isConsistent({ size: 0, root: emptyRoot }, now, [])).toBe(true);
  expect(isConsistent({ size: 0, root: now.root }, now, [])).toBe(false);
  expect(isConsistent(now, { size: 0, root: emptyRoot }, [])).toBe(false);
});

test('a tile that is too short is an error', async () => {
  const read = nodesOfTiles(5, async () => Buffer.alloc(4 * 32));
  await expect(read(0, 1)).rejects.toThrow('a tile of 5 hashes has 128 bytes');
  await expect(read(0, 5)).rejects.toThrow('no subtree 5 of level 0 in a tree of 5');
});

test('the hashes of a tile are concatenated', () => {
  const hashes = [hashLeaf('a'), hashLeaf('b')];
  expect(hashesOf(Buffer.concat(hashes))).toEqual(hashes);
});
