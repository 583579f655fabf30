import { computed } from '@preact/signals';
import { writtenValue } from '../query-text/written-value.ts';
import { place } from '../router/location.ts';

/** What the address of the Document page says. */
export interface DocumentView {
  readonly entity: string;
  readonly entityId: string;
  /** The moment that is shown: after so many changes, or at a time; without both, now. */
  readonly changes: number | undefined;
  readonly at: string | undefined;
  /** The change whose document is compared with it. */
  readonly compared: number | undefined;
  readonly show: 'document' | 'fields';
}

export const documentView = computed((): DocumentView => {
  const { parameters } = place.value;
  return {
    entity: parameters.get('entity') ?? '',
    entityId: parameters.get('id') ?? '',
    changes: wholeNumber(parameters.get('changes')),
    at: parameters.get('at') ?? undefined,
    compared: wholeNumber(parameters.get('with')),
    show: parameters.get('show') === 'fields' ? 'fields' : 'document',
  };
});

function wholeNumber(text: string | null): number | undefined {
  return text !== null && /^[1-9]\d{0,9}$/.test(text) ? Number(text) : undefined;
}

/** The query for all changes that name a document as related. */
export function queryOfTouching({ entity, entityId }: Pick<DocumentView, 'entity' | 'entityId'>): string {
  const item = `entity:${writtenValue(entity)} entityId:${writtenValue(entityId)}`;
  return `related:elemMatch(${item}) occurredAt:>="1970-01-01T00:00:00Z"`;
}

/** The query for all changes of a document. */
export function queryOfDocument({ entity, entityId }: Pick<DocumentView, 'entity' | 'entityId'>): string {
  return `entity:${writtenValue(entity)} entityId:${writtenValue(entityId)} occurredAt:>="1970-01-01T00:00:00Z"`;
}
