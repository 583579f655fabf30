import { computed } from '@preact/signals';
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
