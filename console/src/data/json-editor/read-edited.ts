import type { JsonObject, JsonValue } from '@annals/client/json';
import { parseJson } from '@annals/client/json';

/** A text that is being edited: what it says, or why it says nothing. */
export type Edited<Value> =
  | { readonly value: Value; readonly fault: undefined }
  | { readonly value: undefined; readonly fault: string };

/** Reads a JSON text with every digit. A fault names its line and column. */
export function readEdited(text: string): Edited<JsonValue> {
  try {
    return { value: parseJson(text), fault: undefined };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { value: undefined, fault: withLine(error.message, text) };
  }
}

/** Reads a document, which is an object. */
export function readEditedObject(text: string): Edited<JsonObject> {
  const { value, fault } = readEdited(text);
  if (fault !== undefined) return { value: undefined, fault };
  return value instanceof Map ? { value, fault } : { value: undefined, fault: 'A document is an object: { … }.' };
}

/** The parser tells the position in the whole text; an editor shows lines. */
function withLine(message: string, text: string): string {
  const position = / at position (\d+) of the JSON\.$/.exec(message);
  if (position === null) return message;
  const before = text.slice(0, Number(position[1])).split('\n');
  const column = (before.at(-1) ?? '').length + 1;
  return `Line ${before.length}, column ${column}: ${message.slice(0, position.index).replace(/^E/, 'e')}.`;
}
