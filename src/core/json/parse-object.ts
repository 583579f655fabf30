import { kindOf } from './members.ts';
import { parseJson } from './parse.ts';
import { type JsonNode, JsonSyntaxError } from './tape.ts';

/** Parses a JSON object. Undefined where the text is something else or no JSON. */
export function parseObject(text: string | Buffer): JsonNode | undefined {
  try {
    const node = parseJson(text);
    return kindOf(node) === 'object' ? node : undefined;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}
