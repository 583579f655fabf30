import type { ErrorDetail } from '../../core/errors.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { elementsOf, kindOf, membersOf } from '../../core/json/members.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText, sourceText } from '../../core/json/text.ts';
import { projectedJson } from '../../query/json-projection.ts';
import type { DocumentRow } from '../../recording/documents/document-table.ts';
import { createdAtOf, type DocumentInput, displayName, documentText, readDocument, refuse } from './document.ts';
import { idDiffers, typeIdPattern } from './refusals.ts';

/** A type in a request. */
export interface SentType {
  /** JSON text. */
  readonly text: string;
  readonly id: string;
  /** The version that the client expects. */
  readonly version: number | undefined;
  readonly jsonSchema: string | null;
}

export interface WrittenType extends DocumentRow {
  readonly jsonSchema: string | null;
  /** The name shown in change entries. */
  readonly name: string | undefined;
}

const maxSchemaBytes = 64 * 1024;
const maxSchemaLevels = 32;

/** Parses the JSON text of a type. Throws validation_violation with a detail for each wrong field. */
export const readSentType = threaded(
  import.meta.url,
  'readSentType',
  (text: string, pathId: string | undefined): SentType => {
    const input = readDocument(text);
    if (pathId !== undefined && input.id !== undefined && input.id !== pathId) throw idDiffers();
    const id = pathId ?? input.id ?? '';
    refuse(faultsOf(id, input));
    return { text, id, version: input.version, jsonSchema: schemaOf(input) };
  },
);

/** The type as stored, replacing `before`. Times are in milliseconds since 1970. */
export const writtenType = threaded(
  import.meta.url,
  'writtenType',
  (
    { text, id, jsonSchema }: SentType,
    { version, now }: { version: number; now: number },
    before: string | undefined,
  ): WrittenType => {
    const input = readDocument(text);
    const createdAt = before === undefined ? now : createdAtOf(before);
    const document = documentText(input, { id, version, createdAt, modifiedAt: Math.max(now, createdAt) });
    return { version, document, jsonSchema, fields: projectedJson(document), name: displayName(input.name) };
  },
);

/** The faults that the body's schema cannot find. `id`: from the path or a validated body. */
function faultsOf(id: string, { rest }: DocumentInput): ErrorDetail[] {
  const details: ErrorDetail[] = [];
  if (!typeIdPattern.test(id)) {
    details.push({ field: 'id', message: 'must be capital letters, digits and _, a letter first, 63 at most' });
  }
  const schema = schemaNodeOf(rest);
  const fault = schema && faultOfSchema(schema);
  if (fault !== undefined) details.push({ field: 'jsonSchema', message: fault });
  return details;
}

function schemaNodeOf(rest: DocumentInput['rest']): JsonNode | undefined {
  return rest.find(([key]) => key === 'jsonSchema')?.[1];
}

function faultOfSchema(schema: Parameters<typeof sourceText>[0]): string | undefined {
  if (Buffer.byteLength(sourceText(schema)) > maxSchemaBytes) return `must have at most ${maxSchemaBytes} bytes`;
  return levelsOf(schema) > maxSchemaLevels ? `must have at most ${maxSchemaLevels} levels` : undefined;
}

function levelsOf(value: Parameters<typeof sourceText>[0]): number {
  const kind = kindOf(value);
  if (kind !== 'object' && kind !== 'array') return 0;
  const inner = kind === 'object' ? [...membersOf(value).values()] : elementsOf(value);
  return 1 + inner.reduce((levels, item) => Math.max(levels, levelsOf(item)), 0);
}

function schemaOf({ rest }: DocumentInput): string | null {
  const schema = schemaNodeOf(rest);
  return schema === undefined ? null : compactText(schema);
}
