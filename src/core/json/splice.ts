import { entriesOf, kindOf, memberOf } from './members.ts';
import { cellAt, cellsOfNode, endCell, firstChild, type JsonNode, nextChild, startCell } from './tape.ts';

interface Edit {
  /** Bytes of the document. */
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * Changes to the text of a JSON document without repeated keys. What is not changed keeps its bytes.
 *
 * @example
 * const document = parseJson('{ "model": "a", "n": 1.0 }');
 * String(new JsonSplice(document).set(document, 'model', '"b"').bytes()); // '{ "model": "b", "n": 1.0 }'
 */
export class JsonSplice {
  readonly #document: JsonNode;
  readonly #edits = new Map<string, Edit>();
  /** The parts removed from each container. */
  readonly #removed = new Map<number, Set<number>>();

  constructor(document: JsonNode) {
    this.#document = document;
  }

  /** Gives a member this text as its value, and adds it as the first one where the object does not have it. */
  set(object: JsonNode, name: string, text: string): this {
    const value = memberOf(object, name);
    if (value !== undefined) return this.replace(value, text);
    const from = startOf(object) + 1;
    const comma = firstChild(object.tape, object.node) === -1 ? '' : ',';
    return this.#edit(`${object.node} ${name}`, { from, to: from, text: `${JSON.stringify(name)}:${text}${comma}` });
  }

  replace(value: JsonNode, text: string): this {
    return this.#edit(`${value.node}`, { from: startOf(value), to: endOf(value), text });
  }

  /** Removes members of an object, or elements of an array, by their index. */
  remove(container: JsonNode, isRemoved: (index: number) => boolean): this {
    const removed = this.#removed.getOrInsertComputed(container.node, () => new Set<number>());
    const parts = partsOf(container);
    for (const index of parts.keys()) if (isRemoved(index)) removed.add(index);
    const lastKept = parts.findLastIndex((_, index) => !removed.has(index));
    for (const [index, { from }] of parts.entries()) {
      const next = parts[index + 1];
      if (index < lastKept && next !== undefined && removed.has(index)) {
        this.#edit(`-${from}`, { from, to: next.from, text: '' });
      }
    }
    const [from, to] = [parts[lastKept]?.to ?? parts[0]?.from, parts.at(-1)?.to];
    return from === undefined || to === undefined ? this : this.#edit(`-${from}`, { from, to, text: '' });
  }

  /** Removes a member of an object. */
  removeMember(object: JsonNode, name: string): this {
    const names = entriesOf(object).map(([key]) => key);
    return this.remove(object, (index) => names[index] === name);
  }

  /** Bytes of the document with the changes. */
  get length(): number {
    return this.#parts().reduce((sum, part) => sum + part.length, 0);
  }

  /** The document with the changes. A later change of the same place replaces an earlier one. */
  bytes(): Buffer<ArrayBuffer> {
    return Buffer.concat(this.#parts());
  }

  #parts(): Buffer[] {
    const { bytes } = this.#document.tape;
    const edits = [...this.#edits.values()].sort((a, b) => a.from - b.from || a.to - b.to);
    const parts: Buffer[] = [];
    let position = 0;
    for (const { from, to, text } of edits) {
      // It is within what is removed.
      if (from < position) continue;
      parts.push(bytes.subarray(position, from), Buffer.from(text));
      position = to;
    }
    return [...parts, bytes.subarray(position)];
  }

  #edit(place: string, edit: Edit): this {
    this.#edits.set(place, edit);
    return this;
  }
}

function startOf({ tape, node }: JsonNode): number {
  return cellAt(tape.cells, node + startCell);
}

function endOf({ tape, node }: JsonNode): number {
  return cellAt(tape.cells, node + endCell);
}

/** The bytes of each member or element. */
function partsOf(container: JsonNode): { from: number; to: number }[] {
  const { tape, node } = container;
  const valueAfter = kindOf(container) === 'object' ? cellsOfNode : 0;
  const parts: { from: number; to: number }[] = [];
  for (let child = firstChild(tape, node); child !== -1; child = nextChild(tape, child)) {
    parts.push({ from: startOf({ tape, node: child }), to: endOf({ tape, node: child + valueAfter }) });
  }
  return parts;
}
