import { writtenValue } from '../query-text/written-value.ts';

export interface DocumentKey {
  readonly entity: string;
  readonly entityId: string;
}

const atAnyTime = 'occurredAt:>="1970-01-01T00:00:00Z"';

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
