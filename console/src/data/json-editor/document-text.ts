import { JsonNumber, type JsonObject, type JsonValue, parseJson, stringifyJson } from '@annals/client/json';

/** The members of `metadata` that the service sets. */
const ofService = ['version', 'createdAt', 'modifiedAt'];

/** A document as it is edited, as text. Digits and order are as they were written. */
export function editableText(document: JsonObject): string {
  return stringifyJson(withoutServiceMembers(document), 2);
}

/** A document without its id and without what the service sets. */
export function withoutServiceMembers(document: JsonObject): JsonObject {
  const shown: JsonObject = new Map(document);
  shown.delete('id');
  const metadata = document.get('metadata');
  if (metadata instanceof Map) {
    const further = new Map([...metadata].filter(([key]) => !ofService.includes(key)));
    if (further.size === 0) shown.delete('metadata');
    else shown.set('metadata', further);
  }
  return shown;
}

/** What is sent for an edited document: with the version that was read, so that a change in between is refused. */
export function contentToSave(
  edited: JsonObject,
  { id, version }: { id: string; version: JsonNumber | undefined },
): JsonObject {
  const content: JsonObject = new Map([['id', id], ...edited]);
  content.set('id', id);
  if (version === undefined) return content;
  const metadata = edited.get('metadata');
  return content.set('metadata', new Map([...(metadata instanceof Map ? metadata : []), ['version', version]]));
}

/** The version of a document of the service. */
export function versionOf(document: JsonObject): JsonNumber | undefined {
  const metadata = document.get('metadata');
  const version = metadata instanceof Map ? metadata.get('version') : undefined;
  return version instanceof JsonNumber ? version : undefined;
}

/** A text that is being edited: what it says, or why it says nothing. */
type Edited<Value> =
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

/** The service’s mask for a value that must not be shown. */
export const mask = '********';
