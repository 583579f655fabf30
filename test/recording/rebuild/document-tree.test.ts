import { expect, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { type Tree, textOfTree, treeOf } from '../../../src/recording/rebuild/document-tree.ts';

test('a tree whose text is longer than a string may be is refused with words, and one that just fits is written', () => {
  const tree = treeOf('{"a":[1,{"b":"x"}]}');
  expect(textOfTree(tree, 19)).toBe('{"a":[1,{"b":"x"}]}');
  expect(() => textOfTree(tree, 18)).toThrow('The document is too large');
  // 33 times 16 MiB, of which the text was made once.
  const long: Tree = { kind: 'leaf', text: `"${'x'.repeat(16 * 1024 * 1024)}"` };
  const children = new Map(Array.from({ length: 33 }, (_, index) => [String(index), long]));
  expect(() => textOfTree({ kind: 'object', children })).toThrow(AnnalsError);
});
