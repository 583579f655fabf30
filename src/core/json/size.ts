import { AnnalsError } from '../errors.ts';
import {
  braceByte,
  bracketByte,
  cellAt,
  cellsOfNode,
  firstByte,
  firstChild,
  type JsonNode,
  type JsonTape,
  nextChild,
  sizeCell,
} from './tape.ts';

/** The size of a JSON value. */
export interface JsonSize {
  /** Bytes of its UTF-8 text without insignificant whitespace. */
  readonly bytes: number;
  /** Number of values: the value itself and all values inside of it. Keys do not count. */
  readonly values: number;
  /** Levels of nested arrays and objects; 0 for a string, a number, true, false and null. */
  readonly levels: number;
}

/** Maximum size of a stored instance, agent or configuration value (contract 11). */
export const maxDocument = { bytes: 1_048_576, values: 100_000 } as const;

/**
 * The size of a value.
 *
 * @example
 * sizeOfJson(parseJson('{ "a": [1, 2] }')); // { bytes: 11, values: 4, levels: 2 }
 */
export function sizeOfJson({ tape, node }: JsonNode): JsonSize {
  const { values, levels } = countValues(tape, node);
  return { bytes: cellAt(tape.cells, node + sizeCell), values, levels };
}

function countValues(tape: JsonTape, node: number): { values: number; levels: number } {
  const byte = firstByte(tape, node);
  if (byte !== braceByte && byte !== bracketByte) return { values: 1, levels: 0 };
  let values = 1;
  let inner = 0;
  for (let child = firstChild(tape, node); child !== -1; child = nextChild(tape, child)) {
    const size = countValues(tape, byte === braceByte ? child + cellsOfNode : child);
    values += size.values;
    inner = Math.max(inner, size.levels);
  }
  return { values, levels: inner + 1 };
}

/**
 * Throws payload_too_large for a stored document that is larger than `maxDocument`. The message begins with `what`.
 *
 * @example
 * refuseLargeDocument('An agent', { bytes: 12, values: 1 });
 */
export function refuseLargeDocument(what: string, { bytes, values }: Omit<JsonSize, 'levels'>): void {
  const limit =
    bytes > maxDocument.bytes
      ? `${maxDocument.bytes} bytes`
      : values > maxDocument.values
        ? `${maxDocument.values} JSON values`
        : undefined;
  if (limit !== undefined) throw new AnnalsError('payload_too_large', `${what} has at most ${limit}.`);
}
