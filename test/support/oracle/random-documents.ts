import fc from 'fast-check';
import { Random } from './random.ts';
import type { Tree } from './reference-paths.ts';

/** Few enough to recur across documents, including every key that has caused a bug. */
const keys = [
  'a',
  'b',
  'items',
  '',
  '.',
  'a.b',
  '\\',
  '\\.',
  '0',
  '1',
  '__proto__',
  'constructor',
  'é',
  '😀',
  '\0',
  '\n',
  '"',
  '\ud800',
];
const numbers = [
  '0',
  '-0',
  '0.0e5',
  '1',
  '1.0',
  '10e-1',
  '1.10',
  '1.1',
  '11e-1',
  '-1',
  '1E2',
  '100',
  '9007199254740993',
  '9007199254740992',
  '0.10',
  '1e-7',
];
const strings = ['', 'a', 'n', 'é', '😀', '\ud83d', '\0', '"', '\\', '/', 'a longer text of some words', '0', '1.1'];

/** A string as JSON writes it, or with every unit escaped, or with its slashes escaped. */
const spelled = (texts: string[]) =>
  fc
    .tuple(fc.constantFrom(...texts), fc.constantFrom('plain', 'plain', 'escaped', 'slashes'))
    .map(([text, spelling]) => {
      const plain = JSON.stringify(text);
      if (spelling === 'slashes') return { text: plain.replaceAll('/', '\\/') };
      if (spelling === 'plain') return { text: plain };
      const units = Array.from({ length: text.length }, (_, index) =>
        text.charCodeAt(index).toString(16).padStart(4, '0'),
      );
      return { text: `"${units.map((unit) => `\\u${unit}`).join('')}"` };
    });

const key = spelled(keys);
const scalar: fc.Arbitrary<{ text: string }> = fc.oneof(
  spelled(strings),
  fc.constantFrom(...numbers, 'true', 'false', 'null').map((text) => ({ text })),
);

/** Any document. */
export const { tree: anyTree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('tree'), { maxLength: 5 }).map((elements) => ({ elements })),
    fc.array(fc.tuple(key, tie('tree')), { maxLength: 5 }).map((members) => ({ members })),
  ),
}));

export type Pair = [before: Tree | undefined, after: Tree | undefined];

const { pair } = fc.letrec<{ pair: Pair }>((tie) => ({
  pair: fc.oneof(
    { depthSize: 'small' },
    anyTree.map((same): Pair => [same, same]),
    fc.tuple(anyTree, anyTree).map((both): Pair => both),
    fc.tuple(anyTree, fc.boolean()).map(([only, isBefore]): Pair => (isBefore ? [only, undefined] : [undefined, only])),
    fc.array(tie('pair'), { maxLength: 6 }).map((pairs): Pair => {
      const side = (which: 0 | 1) => ({ elements: pairs.flatMap((each) => each[which] ?? []) });
      return [side(0), side(1)];
    }),
    fc
      .tuple(fc.array(fc.tuple(key, key, tie('pair')), { maxLength: 6 }), fc.boolean(), fc.boolean())
      .map(([members, isReversed, isRespelled]): Pair => {
        const before = members.flatMap(([name, , [value]]): [{ text: string }, Tree][] =>
          value ? [[name, value]] : [],
        );
        const after = members.flatMap(([name, other, [, value]]): [{ text: string }, Tree][] =>
          value ? [[isRespelled && JSON.parse(other.text) === JSON.parse(name.text) ? other : name, value]] : [],
        );
        return [{ members: before }, { members: isReversed ? after.reverse() : after }];
      }),
  ),
}));

/** Two documents that have much in common, either of which may be missing. */
export const anyPair = pair;

const gaps = ['', '', '', ' ', '\n\t', '\r\n  '];

/** The text of a document, with blanks here and there that `seed` chooses; 0 for none. */
export function written(tree: Tree, seed = 0): string {
  const random = new Random(seed);
  const gap = () => (seed === 0 ? '' : random.pick(gaps));
  const value = (node: Tree): string => {
    if ('text' in node) return node.text;
    const parts =
      'elements' in node
        ? node.elements.map((element) => `${gap()}${value(element)}${gap()}`)
        : node.members.map(([name, member]) => `${gap()}${name.text}${gap()}:${gap()}${value(member)}${gap()}`);
    const [open, close] = 'elements' in node ? ['[', ']'] : ['{', '}'];
    return `${open}${parts.length === 0 ? gap() : parts.join(',')}${close}`;
  };
  return `${gap()}${value(tree)}${gap()}`;
}
