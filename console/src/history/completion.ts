import type { NameField } from '../api/history-reads.ts';
import { writtenBounds } from '../query-text/edit-query.ts';
import { unquoted } from '../query-text/quoted.ts';
import { scanQuery, type Term } from '../query-text/scan-query.ts';
import { writtenValue } from '../query-text/written-value.ts';
import { timeChoices } from './time-choices.ts';

/** Something that may stand at the caret. */
export interface Suggestion {
  readonly label: string;
  /** What it means, or an example. */
  readonly hint: string;
  /** Takes the place of the text from `start` to the caret. */
  readonly insert: string;
  readonly start: number;
}

/** What the caret is in. */
export interface CompletionPlace {
  /** The beginning of a field's name, where one may begin here. */
  readonly field: { readonly start: number; readonly prefix: string } | undefined;
  /** The value that is being written. */
  readonly value:
    | { readonly start: number; readonly prefix: string; readonly field: string; readonly inList: boolean }
    | undefined;
  /** Whether an item match surrounds the caret: other fields stand there, and names are those of related items. */
  readonly inItem: boolean;
}

const fields: readonly (readonly [string, string])[] = [
  ['entity', 'the type of document, such as order'],
  ['entityId', 'one document, beside its entity'],
  ['type', 'create, update or delete'],
  ['actor', 'who changed it'],
  ['occurredAt', 'when, such as >="2026-01-01T00:00:00Z"'],
  ['related', 'elemMatch(…): one related item'],
  ['related.entity', 'the type of a related item'],
  ['related.entityId', 'the id of a related item'],
  ['compoundLogicalQuery', '((…) OR (…))'],
];

const itemFields: readonly (readonly [string, string])[] = [
  ['entity', 'the type of the related item'],
  ['entityId', 'its id'],
];

/** Finds out what is being written at the caret. */
export function completionPlace(text: string, caret: number): CompletionPlace {
  const written = text.slice(0, caret);
  const { terms } = scanQuery(written);
  const last = terms.at(-1);
  const inItem = terms.some((term) => term.field === 'related' && term.end >= caret && isOpen(written, term.start));
  const beginning = /(?:^|[ (])([A-Za-z_][A-Za-z0-9_.]*|)$/.exec(written);
  const prefix = beginning?.[1] ?? '';
  const field = beginning === null ? undefined : { start: caret - prefix.length, prefix };
  if (last === undefined || last.end < caret || isGroup(written, last)) return { field, value: undefined, inItem };
  const value = valueAt(written, last);
  // Right after the colon, in quotes and in a list no field begins.
  const mayBeField =
    field !== undefined &&
    field.start > last.valueStart &&
    !value.inList &&
    !/^["~<>]/.test(written.slice(last.valueStart));
  return { field: mayBeField ? field : undefined, value, inItem };
}

function isGroup(written: string, { field, valueStart }: Term): boolean {
  return (
    field === 'compoundLogicalQuery' ||
    ((field === 'related' || field === 'change') && written.startsWith('elemMatch(', valueStart))
  );
}

function isOpen(written: string, start: number): boolean {
  let open = 0;
  for (const { kind, start: from, end } of scanQuery(written).tokens) {
    if (kind !== 'mark' || from < start) continue;
    const mark = written.slice(from, end);
    if (mark === '(') open += 1;
    if (mark === ')') open -= 1;
  }
  return open > 0;
}

function valueAt(written: string, { field, valueStart }: Term): NonNullable<CompletionPlace['value']> {
  const value = written.slice(valueStart);
  if (!value.startsWith('(')) return { start: valueStart, prefix: plain(value), field, inList: false };
  const item = /[^,(]*$/.exec(value)?.[0] ?? '';
  const blanks = item.length - item.trimStart().length;
  return { start: written.length - item.length + blanks, prefix: plain(item.trim()), field, inList: true };
}

function plain(written: string): string {
  return written.startsWith('"') ? unquoted(written) : written;
}

/** The names that would help here, where the service knows some. */
export function wantedNames({
  value,
  inItem,
}: CompletionPlace): { readonly field: NameField; readonly prefix: string } | undefined {
  if (value === undefined || /[*~]/.test(value.prefix)) return undefined;
  if (inItem) return value.field === 'entity' ? { field: 'related.entity', prefix: value.prefix } : undefined;
  const { field, prefix } = value;
  return field === 'entity' || field === 'actor' || field === 'related.entity' ? { field, prefix } : undefined;
}

/** What may stand at the caret, given the names that begin like the value there. */
export function suggestionsAt(place: CompletionPlace, names: readonly string[], now: number): Suggestion[] {
  return [...valueSuggestions(place, names, now), ...fieldSuggestions(place)];
}

function fieldSuggestions({ field, inItem }: CompletionPlace): Suggestion[] {
  if (field === undefined) return [];
  return (inItem ? itemFields : fields)
    .filter(([name]) => name.toLowerCase().startsWith(field.prefix.toLowerCase()))
    .map(([name, hint]) => ({ label: name, hint, insert: `${name}:`, start: field.start }));
}

function valueSuggestions({ value }: CompletionPlace, names: readonly string[], now: number): Suggestion[] {
  if (value === undefined) return [];
  const { start, prefix, inList, field } = value;
  const after = inList ? '' : ' ';
  if (field === 'occurredAt') {
    if (prefix !== '') return [];
    return timeChoices.flatMap(({ words, bounds }) => {
      const written = writtenBounds(bounds(now));
      return written === '' ? [] : [{ label: words, hint: written, insert: `${written} `, start }];
    });
  }
  if (field === 'related')
    return prefix === ''
      ? [{ label: 'elemMatch(', hint: 'one item satisfies all of it', insert: 'elemMatch(', start }]
      : [];
  const known = field === 'type' ? ['create', 'update', 'delete'].filter((type) => type.startsWith(prefix)) : names;
  return known.map((name) => ({ label: name, hint: '', insert: `${writtenValue(name)}${after}`, start }));
}
