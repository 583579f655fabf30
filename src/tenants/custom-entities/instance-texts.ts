import { threaded } from '../../core/fairness/threads.ts';
import { kindOf, objectText } from '../../core/json/members.ts';
import { refuseLargeDocument } from '../../core/json/size.ts';
import { projectedJson } from '../../query/json-projection.ts';
import {
  createdAtOf,
  type DocumentInput,
  displayName,
  documentText,
  isMapByLanguage,
  readDocument,
  refuse,
  refuseOtherTimes,
  valuesOfDocument,
} from './document.ts';
import { widthOf } from './instance-store.ts';
import { patchDocument } from './patch-document.ts';

/** Id and version in a request. */
export type SentInstance = Pick<DocumentInput, 'id' | 'version'>;

export interface WrittenInstance {
  /** The JSON text as stored and sent. */
  readonly document: string;
  /** The text of the jsonb column. */
  readonly fields: string;
  readonly wide: number;
  /** The name shown in change entries. */
  readonly name: string | undefined;
}

/** Parses the JSON text of an instance. Throws validation_violation with a detail for each wrong field. */
export const readSentInstance = threaded(import.meta.url, 'readSentInstance', (text: string): SentInstance => {
  const { id, version } = readInstance(text);
  return { id, version };
});

/**
 * The instance with this content, replacing `before`. Times are in milliseconds since 1970. Throws payload_too_large
 * (contract 11), and validation_violation for values that jsonb cannot represent.
 */
export const writtenInstance = threaded(
  import.meta.url,
  'writtenInstance',
  (
    text: string,
    { id, version, now }: { id: string; version: number; now: number },
    before: string | undefined,
  ): WrittenInstance => {
    const input = readInstance(text);
    const createdAt = before === undefined ? now : createdAtOf(before);
    const document = documentText(input, { id, version, createdAt, modifiedAt: Math.max(now, createdAt) });
    const values = valuesOfDocument(input);
    refuseLargeDocument('An instance', { bytes: Buffer.byteLength(document), values });
    return { document, fields: projectedJson(document), wide: widthOf(values), name: displayName(input.name) };
  },
);

/**
 * Applies a patch to a stored instance, as `patchDocument` does. A short patch with copies may produce a long document.
 * Unlike a PUT, a patch may not change the times that the service writes.
 */
export const patchedInstance = threaded(
  import.meta.url,
  'patchedInstance',
  (document: string, patch: string): string => {
    const patched = patchDocument(document, patch);
    refuseOtherTimes(document, patched);
    return patched;
  },
  (_document, patch) => patch.includes('copy') || patch.includes('\\u'),
);

/**
 * The JSON text for the schema: the instance's own fields, with id, name and metadata only if the schema mentions them.
 * So a schema that forbids additional fields need not list these three.
 */
export const textForSchema = threaded(
  import.meta.url,
  'textForSchema',
  (text: string, id: string, jsonSchema: string): string => {
    const input = readInstance(text);
    const spokenOf = mentionedFields(jsonSchema);
    return objectText([
      ...(spokenOf.has('id') ? [['id', JSON.stringify(id)] as const] : []),
      ...(spokenOf.has('name') && input.name !== undefined ? [['name', input.name] as const] : []),
      ...(spokenOf.has('metadata') ? [['metadata', objectText(input.metadata)] as const] : []),
      ...input.rest,
    ]);
  },
);

function readInstance(text: string): DocumentInput {
  const input = readDocument(text);
  const { name } = input;
  const isValid = name === undefined || kindOf(name) === 'string' || isMapByLanguage(name);
  refuse(isValid ? [] : [{ field: 'name', message: 'must be a string, or a map by language' }]);
  return input;
}

function mentionedFields(jsonSchema: string): Set<string> {
  const schema: { properties?: object; required?: unknown } | boolean = JSON.parse(jsonSchema);
  if (typeof schema === 'boolean') return new Set();
  const required = Array.isArray(schema.required) ? schema.required : [];
  return new Set([...Object.keys(schema.properties ?? {}), ...required]);
}
