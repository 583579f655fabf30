import { elementsOf, entriesOf, kindOf } from '../core/json/members.ts';
import { cellAt, type JsonNode, startCell } from '../core/json/tape.ts';
import { sourceText } from '../core/json/text.ts';
import { mask } from '../core/mask.ts';

const maskText = JSON.stringify(mask);

/** Limits of the paths of one change, in characters. */
export const maxMaskedPath = 1_000;
export const maxMaskedPaths = 64 * 1024;

/**
 * Takes masked values of `after` as unequal to those of `before`: those at the paths, written as an entry has them, and beneath them. Who
 * masks values before a change is sent knows whether they differ, and the texts do not tell it any more. A value that is not masked is
 * compared as ever. The path "" names the whole document.
 */
export function markMaskedDifferences(after: JsonNode, paths: readonly string[]): void {
  const wanted = new Set(paths);
  const onTheWay = new Set(paths.flatMap(prefixesOf));
  const unequal = new Set(after.tape.unequal);
  const open = [{ node: after, path: '', isRoot: true, isWanted: wanted.has('') }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, path, isRoot, isWanted } = next;
    const kind = kindOf(node);
    if (kind === 'string' && isWanted && sourceText(node) === maskText) {
      unequal.add(cellAt(node.tape.cells, node.node + startCell));
    }
    if ((kind !== 'object' && kind !== 'array') || !(isRoot || isWanted || onTheWay.has(path))) continue;
    for (const [key, child] of kind === 'object' ? entriesOf(node) : positionsOf(node)) {
      const segment = key.replace(/[.\\]/g, '\\$&');
      const below = isRoot ? segment : `${path}.${segment}`;
      open.push({ node: child, path: below, isRoot: false, isWanted: isWanted || wanted.has(below) });
    }
  }
  after.tape.unequal = unequal;
}

function positionsOf(array: JsonNode): [string, JsonNode][] {
  return elementsOf(array).map((element, index) => [String(index), element]);
}

/** The path "a.b.c" leads through "a" and "a.b". */
function prefixesOf(path: string): string[] {
  const prefixes: string[] = [];
  for (let at = 0; at < path.length; at++) {
    if (path[at] === '\\') at += 1;
    else if (path[at] === '.') prefixes.push(path.slice(0, at));
  }
  return prefixes;
}
