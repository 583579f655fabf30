import type { JsonValue } from '@annals/client/json';
import { writtenValue } from '../../../src/query/written.ts';
import { nameOfPath, writtenPath, writtenScalar } from '../query-text/edit-query.ts';

export interface DocumentKey {
  readonly entity: string;
  readonly entityId: string;
}

export const atAnyTime = 'occurredAt:>="1970-01-01T00:00:00Z"';

/** The query for all changes that touched a document: its own, and those that name it as related. */
export function queryOfTouching(document: DocumentKey): string {
  const item = writtenKey(document);
  return `compoundLogicalQuery:((${item}) OR (related:elemMatch(${item}))) ${atAnyTime}`;
}

/** The query for all changes of a document, or for those that fulfil a condition too. */
export function queryOfDocument(document: DocumentKey, condition = ''): string {
  return [writtenKey(document), ...(condition === '' ? [] : [condition]), atAnyTime].join(' ');
}

function writtenKey({ entity, entityId }: DocumentKey): string {
  return `entity:${writtenValue(entity)} entityId:${writtenValue(entityId)}`;
}

/** A field of a document: its path as an entry writes it. */
export interface DocumentField extends DocumentKey {
  readonly path: string;
}

/** The query for all changes of a field, in all documents of its entity type. */
export function queryOfField({ entity, path }: Pick<DocumentField, 'entity' | 'path'>): string {
  return `entity:${writtenValue(entity)} path:${writtenPath(nameOfPath(path))}`;
}

/** The query for all changes of a field of one document. */
export function queryOfDocumentField(field: DocumentField): string {
  return queryOfDocument(field, `path:${writtenValue(field.path)}`);
}

/** The query for changes to and from a value of a field. Undefined for a value that a query cannot have. */
export function queryOfValue(field: DocumentField, value: JsonValue): string | undefined {
  const written = writtenScalar(value);
  if (written === undefined) return undefined;
  const change = (side: string) => `(change:elemMatch(path:${writtenValue(field.path)} ${side}:${written}))`;
  return queryOfDocument(field, `compoundLogicalQuery:(${change('after')} OR ${change('before')})`);
}

/** The query for the changes of a field that made its number lower, or higher. */
export function queryOfStep({ entity, path }: Pick<DocumentField, 'entity' | 'path'>, is: 'lower' | 'higher'): string {
  return `entity:${writtenValue(entity)} change:elemMatch(path:${writtenPath(nameOfPath(path))} is:${is})`;
}
