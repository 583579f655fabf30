import { maximumImportDepth, parseOnTape } from '../../core/json/parse.ts';
import { type JsonNode, JsonTape } from '../../core/json/tape.ts';

/** A tape that a long document made larger than this is dropped. The next one gets a new tape. */
const cellsToKeep = 1024 * 1024;

/**
 * A place for one parsed document after the other: a new tape for each would cost more than the parsing. A node lives until the next
 * call.
 */
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
