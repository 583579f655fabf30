import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changesOfRow } from '../../../src/recording/mapping/changes-of-row.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import type { Row } from '../../../src/recording/mapping/row-change.ts';
import { referenceParse } from '../../support/oracle/reference-json.ts';
import { canonical, decoded, referencePaths, type Tree } from '../../support/oracle/reference-paths.ts';
import { trials } from '../../support/oracle/trials.ts';

type Step = { key: string; isPosition: boolean };

/** The plain reading of a pattern: a key matches itself, a star any key, and a position may be passed over. */
function covers([first, ...pattern]: readonly string[], [step, ...path]: readonly Step[]): boolean {
  if (step === undefined) return first === undefined;
  if (first !== undefined && (first === '*' || first === step.key) && covers(pattern, path)) return true;
  return first !== undefined && step.isPosition && covers([first, ...pattern], path);
}

interface Rules {
  mask: string[];
  ignore: string[];
}

/** The document by the rules. A masked value becomes a text of the mask's length, the same for equal values. */
function byRules(tree: Tree, rules: Rules, tokens: string[], path: readonly Step[] = []): Tree | undefined {
  const isOne = (patterns: string[]) => path.length > 0 && patterns.some((pattern) => covers(pattern.split('.'), path));
  if (isOne(rules.ignore)) return undefined;
  if (isOne(rules.mask) && !('text' in tree && tree.text === 'null')) {
    const value = canonical(tree);
    if (!tokens.includes(value)) tokens.push(value);
    return { text: JSON.stringify(`#${String(tokens.indexOf(value)).padStart(7, '0')}`) };
  }
  if ('elements' in tree) {
    const elements = tree.elements.flatMap(
      (element, index) => byRules(element, rules, tokens, [...path, { key: String(index), isPosition: true }]) ?? [],
    );
    return { elements };
  }
  if (!('members' in tree)) return tree;
  const members = tree.members.flatMap(([key, value]): [Tree & { text: string }, Tree][] => {
    const below = byRules(value, rules, tokens, [...path, { key: decoded(key), isPosition: false }]);
    return below === undefined ? [] : [[key, below]];
  });
  return { members };
}

const leaf = fc.constantFrom('null', '1', '1.0', '2', '"x"', '"a longer text"', 'true');
const keys = fc.constantFrom('a', 'b', 'card', '0', 'x.y');
const anyValue = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }).map((elements) => `[${elements.join(',')}]`),
    fc
      .uniqueArray(fc.tuple(keys, tie('value')), { selector: ([key]) => key, maxLength: 3 })
      .map((members) => `{${members.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`),
  ),
})).value;
const columns = ['a', 'card', 'doc', 'u'] as const;
const anyRow = fc
  .tuple(...columns.map(() => anyValue))
  .map(
    (values) => new Map([['id', '7'], ...columns.map((column, index) => [column, values[index] ?? 'null'] as const)]),
  );
const anyRules = fc.record({
  mask: fc.subarray(['card', 'doc.card', 'doc.*', 'doc.a.b', 'a.*.b', 'a.0', 'u.card.card']),
  ignore: fc.subarray(['u', 'doc.a', 'a.b', 'doc.*.card']),
});

function treeOf(row: Row): Tree {
  return referenceParse(`{${[...row].map(([column, text]) => `${JSON.stringify(column)}:${text}`).join(',')}}`);
}

test('the paths of any row are those of its documents by a plain reading of the rules', () => {
  fc.assert(
    fc.property(
      anyRow,
      anyRow,
      anyRules,
      fc.constantFrom('create', 'update', 'delete'),
      (before, after, rules, type) => {
        const mapping = readMapping(
          JSON.stringify({ version: 1, tables: { 'public.t': { entity: 't', id: ['id'], ...rules } } }),
        );
        const sides = { before: type === 'create' ? undefined : before, after: type === 'delete' ? undefined : after };
        const [mapped] = changesOfRow(
          mapping,
          { table: 'public.t', type, at: 1, identity: Buffer.alloc(16), ...sides },
          { actor: 'x' },
        );
        const tokens: string[] = [];
        const shown = (row: Row | undefined) => row && byRules(treeOf(row), rules, tokens);
        const members = referencePaths(shown(sides.before), shown(sides.after));
        const expected = `{${members.join(',')}}`.replace(/"#\d{7}"/g, '"********"');
        if (members.length === 0) expect(mapped).toEqual({ kind: 'unchanged', tenant: undefined });
        else {
          if (mapped?.kind !== 'change') throw new Error(`${mapped?.kind} instead of ${expected}`);
          expect(JSON.parse(mapped.change.paths)).toEqual(JSON.parse(expected));
        }
      },
    ),
    { numRuns: trials(100) },
  );
});
