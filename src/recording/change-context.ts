import { childrenOf, kindOf } from '../core/json/members.ts';
import { cellAt, type JsonNode, sizeCell } from '../core/json/tape.ts';

/** Maximum bytes of a change's context as compact JSON. */
const maxContextBytes = 4096;
/** Maximum nesting depth of a context, its own object included. */
const maxContextLevels = 4;

/** The fault of a change's `context`, or undefined. */
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
