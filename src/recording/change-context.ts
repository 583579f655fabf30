import { childrenOf, kindOf } from '../core/json/members.ts';
import { cellAt, type JsonNode, sizeCell } from '../core/json/tape.ts';

/** What the JSON text of a change's context may have, in bytes without insignificant whitespace. */
const maxContextBytes = 4096;
/** How deep a context may nest, its own object included. */
const maxContextLevels = 4;

/** What is wrong with the `context` of a change, or undefined. */
export function faultOfContext(context: JsonNode): string | undefined {
  if (kindOf(context) !== 'object') return 'is no object';
  if (cellAt(context.tape.cells, context.node + sizeCell) > maxContextBytes)
    return `has more than ${maxContextBytes} bytes`;
  let level = [context];
  for (let depth = 1; depth <= maxContextLevels; depth++) {
    level = level.flatMap(childrenOf).filter((value) => kindOf(value) === 'object' || kindOf(value) === 'array');
    if (level.length === 0) return undefined;
  }
  return `has more than ${maxContextLevels} levels`;
}
