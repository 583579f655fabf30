import { threaded } from '../../core/concurrency/threaded.ts';
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

/** What a client says of an instance besides its content. */
export type SentInstance = Pick<DocumentInput, 'id' | 'version'>;

export interface WrittenInstance {
  /** The JSON text that Annals stores and sends. */
  readonly document: string;
  /** The text for the jsonb column. */
  readonly fields: string;
  readonly wide: number;
  /** The name that change entries show. */
  readonly name: string | undefined;
}

/** Checks the JSON text of an instance. Throws validation_violation with a detail for each wrong field. */
export const readSentInstance = threaded(import.meta.url, 'readSentInstance', (text: string): SentInstance => {
  const { id, version } = readInstance(text);
  return { id, version };
});

/**
 * The instance with this content. `before` is the stored instance that it replaces. Times are in milliseconds since 1970.
 * Throws payload_too_large (contract 11), and validation_violation for values that the jsonb column cannot hold.
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
 * Applies a patch to a stored instance, as `patchDocument` does. A short patch that copies may make a long document. A PUT ignores
 * the times that only the service writes, since answers have them. A patch names what it wants to change.
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
 * The JSON text for the schema, which sees the instance's own fields. Every instance has id, name and metadata; the
 * schema sees them only if it mentions them. So a schema that forbids additional fields need not list these three.
 */
export const textForSchema = threaded(
  import.meta.url,
  'textForSchema',
  (text: string, id: string, jsonSchema: string): string => {
    const input = readInstance(text);
    const spokenOf = fieldsSpokenOf(jsonSchema);
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
  const named = name === undefined || kindOf(name) === 'string' || isMapByLanguage(name);
  refuse(named ? [] : [{ field: 'name', message: 'must be a string, or a map by language' }]);
  return input;
}

function fieldsSpokenOf(jsonSchema: string): Set<string> {
  const schema: { properties?: object; required?: unknown } | boolean = JSON.parse(jsonSchema);
  if (typeof schema === 'boolean') return new Set();
  const required = Array.isArray(schema.required) ? schema.required : [];
  return new Set([...Object.keys(schema.properties ?? {}), ...required]);
}
