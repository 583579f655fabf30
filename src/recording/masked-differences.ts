import { elementsOf, entriesOf, kindOf } from '../core/json/members.ts';
import { cellAt, type JsonNode, startCell } from '../core/json/tape.ts';
import { sourceText } from '../core/json/text.ts';
import { mask } from '../core/sealing.ts';

const maskText = JSON.stringify(mask);

/** Limits of the masked paths of a change, in characters. */
export const maxMaskedPath = 1_000;
export const maxMaskedPaths = 64 * 1024;

/**
 * Treats the masked values of `after` at and below these paths as different from `before`: only the sender that masked
 * them knows. Other values are compared normally. The path "" is the whole document.
 */
export function markMaskedDifferences(after: JsonNode, paths: readonly string[]): void {
  const masked = new Set(paths);
  const onTheWay = new Set(paths.flatMap(prefixesOf));
  const unequal = new Set(after.tape.unequal);
  const open = [{ node: after, path: '', isRoot: true, isMasked: masked.has('') }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, path, isRoot, isMasked } = next;
    const kind = kindOf(node);
    if (kind === 'string' && isMasked && sourceText(node) === maskText) {
      unequal.add(cellAt(node.tape.cells, node.node + startCell));
    }
    if ((kind !== 'object' && kind !== 'array') || !(isRoot || isMasked || onTheWay.has(path))) continue;
    for (const [key, child] of kind === 'object' ? entriesOf(node) : positionsOf(node)) {
      const segment = key.replace(/[.\\]/g, '\\$&');
      const below = isRoot ? segment : `${path}.${segment}`;
      open.push({ node: child, path: below, isRoot: false, isMasked: isMasked || masked.has(below) });
    }
  }
  after.tape.unequal = unequal;
}

function positionsOf(array: JsonNode): [string, JsonNode][] {
  return elementsOf(array).map((element, index) => [String(index), element]);
}

/** "a.b.c" has the prefixes "a" and "a.b". */
function prefixesOf(path: string): string[] {
  const prefixes: string[] = [];
  for (let at = 0; at < path.length; at++) {
    if (path[at] === '\\') at += 1;
    else if (path[at] === '.') prefixes.push(path.slice(0, at));
  }
  return prefixes;
}
