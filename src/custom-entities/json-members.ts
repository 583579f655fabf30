import {
  braceByte,
  bracketByte,
  cellsOfNode,
  detailCell,
  type JsonNode,
  nextCell,
  quoteByte,
  startCell,
} from '../recording/json-tape.ts';
import { compactText, decodedString, sourceText } from '../recording/json-text.ts';

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'true' | 'false' | 'null';

export function kindOf(value: JsonNode): JsonKind {
  const byte = value.tape.bytes[value.tape.cells[value.node + startCell] ?? 0];
  if (byte === braceByte) return 'object';
  if (byte === bracketByte) return 'array';
  if (byte === quoteByte) return 'string';
  return byte === 0x74 ? 'true' : byte === 0x66 ? 'false' : byte === 0x6e ? 'null' : 'number';
}

/** The members of an object by key, as they were written and in that order; of a key given twice the last. */
export function membersOf({ tape, node }: JsonNode): Map<string, JsonNode> {
  const members = new Map<string, JsonNode>();
  for (let key = tape.cells[node + detailCell] ?? -1; key !== -1; key = tape.cells[key + nextCell] ?? -1) {
    members.set(decodedString(tape, key), { tape, node: key + cellsOfNode });
  }
  return members;
}

/** The elements of an array. */
export function elementsOf({ tape, node }: JsonNode): JsonNode[] {
  const elements: JsonNode[] = [];
  for (
    let element = tape.cells[node + detailCell] ?? -1;
    element !== -1;
    element = tape.cells[element + nextCell] ?? -1
  ) {
    elements.push({ tape, node: element });
  }
  return elements;
}

/** The string that a node stands for, or undefined where it is no string. */
export function stringOf(value: JsonNode | undefined): string | undefined {
  return value !== undefined && kindOf(value) === 'string' ? decodedString(value.tape, value.node) : undefined;
}

/** The text of an object with these members, each as it was written. */
export function objectText(members: Iterable<readonly [string, JsonNode | string]>): string {
  const written: string[] = [];
  for (const [key, value] of members) {
    written.push(`${JSON.stringify(key)}:${typeof value === 'string' ? value : compactText(value)}`);
  }
  return `{${written.join(',')}}`;
}

export { compactText, sourceText };
