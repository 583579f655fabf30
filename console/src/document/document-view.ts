import { computed } from '@preact/signals';
import { place, type Target } from '../router/router.tsx';

/** A moment of a document: after so many changes, or at a time; without both, now. */
export interface Moment {
  readonly changes: number | undefined;
  readonly at: string | undefined;
}

/** What the address of the Document page says. */
export interface DocumentView extends Moment {
  readonly entity: string;
  readonly entityId: string;
  /** The moment that is compared with it. */
  readonly compared: Moment | undefined;
  readonly show: 'document' | 'fields';
}

/** What is looked for where the address names no document. */
export interface DocumentsView {
  /** The beginning of an id, or of words of a name. */
  readonly text: string;
  /** An entity type; empty: any. */
  readonly entity: string;
  /** Days without a change of the documents; undefined: any documents. */
  readonly unchangedDays: number | undefined;
}

export const documentView = computed((): DocumentView => {
  const { parameters } = place.value;
  return {
    entity: parameters.get('entity') ?? '',
    entityId: parameters.get('id') ?? '',
    changes: wholeNumber(parameters.get('changes')),
    at: parameters.get('at') ?? undefined,
    compared: comparedMoment(parameters.get('with')),
    show: parameters.get('show') === 'fields' ? 'fields' : 'document',
  };
});

export const documentsView = computed((): DocumentsView => {
  const { parameters } = place.value;
  return {
    text: parameters.get('text') ?? '',
    entity: parameters.get('entity') ?? '',
    unchangedDays: wholeNumber(parameters.get('unchanged')),
  };
});

/** The address of a search for documents. */
export function documentsOf({ text = '', entity = '', unchangedDays }: Partial<DocumentsView>): Target {
  return { path: 'document', parameters: { text, entity, unchanged: unchangedDays } };
}

/** `with` in the address: the number of a change, a time, or `now`. */
function comparedMoment(text: string | null): Moment | undefined {
  if (text === null) return undefined;
  const changes = wholeNumber(text);
  return { changes, at: changes !== undefined || text === 'now' ? undefined : text };
}

function wholeNumber(text: string | null): number | undefined {
  return text !== null && /^[1-9]\d{0,9}$/.test(text) ? Number(text) : undefined;
}
