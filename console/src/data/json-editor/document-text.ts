import { JsonNumber, type JsonObject, stringifyJson } from '@annals/client/json';

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
