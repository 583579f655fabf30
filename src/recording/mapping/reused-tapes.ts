import { maximumImportDepth, parseOnTape } from '../../core/json/parse.ts';
import { type JsonNode, JsonTape } from '../../core/json/tape.ts';

/** A tape that grew larger than this is replaced. */
const cellsToKeep = 1024 * 1024;

/** Reuses a tape, since allocating one costs more than parsing a document. A node is valid until the next call. */
export class ReusedTape {
  #tape = new JsonTape();

  /** Throws `JsonSyntaxError`. */
  parse(text: string): JsonNode {
    if (this.#tape.cells.length > cellsToKeep) this.#tape = new JsonTape();
    const tape = this.#tape;
    const bytes = Buffer.from(text);
    parseOnTape(tape, bytes, 0, bytes.length, maximumImportDepth);
    if (text.length === bytes.length) tape.ascii = text;
    return { tape, node: 0 };
  }
}

/** For the two sides of a change. */
export class ReusedTapes {
  readonly before = new ReusedTape();
  readonly after = new ReusedTape();
}
