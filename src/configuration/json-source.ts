import { parseJson } from '../recording/json.ts';
import { cellsOfNode, detailCell, type JsonNode, nextCell } from '../recording/json-tape.ts';
import { compactText, decodedString } from '../recording/json-text.ts';

/**
 * The `value` of each item of a body, as JSON text that keeps numbers as they were written (contract: how changes are
 * recorded). The body has been validated: it is an item, or an array of items.
 */
export function valueTexts(bodyText: string): string[] {
  const body = parseJson(bodyText);
  const items = bodyText.trimStart().startsWith('[') ? childrenOf(body) : [body];
  return items.map((item) => compactText(memberOf(item, 'value')));
}

function childrenOf({ tape, node }: JsonNode): JsonNode[] {
  const children: JsonNode[] = [];
  for (let child = cell(tape.cells, node + detailCell); child !== -1; child = cell(tape.cells, child + nextCell)) {
    children.push({ tape, node: child });
  }
  return children;
}

/** Of a key given twice the last counts. */
function memberOf(object: JsonNode, name: string): JsonNode {
  const key = childrenOf(object).findLast(({ tape, node }) => decodedString(tape, node) === name);
  if (key === undefined) throw new Error(`an object that was validated has no ${name}`);
  return { tape: key.tape, node: key.node + cellsOfNode };
}

function cell(cells: Int32Array, index: number): number {
  return cells[index] ?? -1;
}
