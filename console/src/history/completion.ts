import { scanQuery, type Term } from '../../../src/query/scan.ts';
import { unquoted } from '../../../src/query/written.ts';
import type { KnownName, NameSearch, ValueSearch } from '../api/history-reads.ts';
import { chosenValues, writtenBounds, writtenPath, writtenText } from '../query-text/edit-query.ts';
import { timeChoices } from './time-choices.ts';

/** A completion at the caret. */
export interface Suggestion {
  readonly label: string;
  /** What it means, or an example. */
  readonly hint: string;
  /** Takes the place of the text from `start` to the caret. */
  readonly insert: string;
  readonly start: number;
}

/** What the caret is in. */
interface CompletionPlace {
  /** The beginning of a field's name, where one may begin here. */
  readonly field: { readonly start: number; readonly prefix: string } | undefined;
  /** The value that is being written. */
  readonly value:
    | { readonly start: number; readonly prefix: string; readonly field: string; readonly inList: boolean }
    | undefined;
  /** The field of the item match around the caret: it has other fields. */
  readonly item: ItemField | undefined;
  /** The one entity type that the query asks for, which has paths of its own. */
  readonly entity: string | undefined;
  /** Whether the item match has a condition, so that it may end. */
  readonly mayEnd: boolean;
}

type ItemField = 'related' | 'change';

type Fields = readonly (readonly [name: string, hint: string])[];

const fields: Fields = [
  ['entity', 'the type of document, such as order'],
  ['entityId', 'one document, beside its entity'],
  ['type', 'create, update or delete'],
  ['actor', 'who changed it'],
  ['path', 'a field that changed, such as price.amount'],
  ['change', 'elemMatch(…): a field with its values'],
  ['occurredAt', 'when, such as >="2026-01-01T00:00:00Z"'],
  ['related', 'elemMatch(…): one related item'],
  ['related.entity', 'the type of a related item'],
  ['related.entityId', 'the id of a related item'],
  ['compoundLogicalQuery', '((…) OR (…))'],
];

/** Fields of who exactly made a change: a part of the history may not show it. */
const idFields: Fields = [
  ['actorId', 'the id of who changed it'],
  ['onBehalfOf', 'for whom: the name'],
  ['onBehalfOfId', 'for whom: the id'],
  ['correlationId', 'one request or transaction'],
];

/** Members of the context; the language takes any name. */
const contextFields: Fields = [
  ['context.ip', 'the address, where the context has one'],
  ['context.requestId', 'the request, where the context has it'],
];

/** The fields that an entry may lack. */
const optionalFields = new Set([...idFields, ...contextFields].map(([name]) => name));

/** What the reader may use in a query beside what everybody may. */
export interface QueryRights {
  readonly ids: boolean;
  readonly context: boolean;
}

const itemFields: Readonly<Record<ItemField, Fields>> = {
  related: [
    ['entity', 'the type of the related item'],
    ['entityId', 'its id'],
  ],
  change: [
    ['path', 'the field that changed'],
    ['before', 'what it was, such as OPEN or >5'],
    ['after', 'what it became'],
    ['is', 'lower or higher, of numbers'],
  ],
};

/** Finds out what is being written at the caret. */
export function completionPlace(text: string, caret: number): CompletionPlace {
  const written = text.slice(0, caret);
  const { terms } = scanQuery(written);
  const last = terms.at(-1);
  const item = terms.map(({ field: name, end, start }) => (end >= caret && isOpen(written, start) ? name : ''));
  const around = item.find((name) => name === 'related' || name === 'change');
  const [entity, ...further] = chosenValues(text, 'entity') ?? [];
  const common = { item: around, entity: further.length === 0 ? entity : undefined, mayEnd: around !== last?.field };
  const beginning = /(?:^|[ (])([A-Za-z_][A-Za-z0-9_.]*|)$/.exec(written);
  const prefix = beginning?.[1] ?? '';
  const field = beginning === null ? undefined : { start: caret - prefix.length, prefix };
  if (last === undefined || last.end < caret || isGroup(written, last)) return { field, value: undefined, ...common };
  const value = valueAt(written, last);
  // Right after the colon, in quotes and in a list no field begins.
  const mayBeField =
    field !== undefined &&
    field.start > last.valueStart &&
    !value.inList &&
    !/^["~<>]/.test(written.slice(last.valueStart));
  return { field: mayBeField ? field : undefined, value, ...common };
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
export function namesToRead({ value, item, entity }: CompletionPlace): NameSearch | ValueSearch | undefined {
  if (value === undefined || value.prefix.startsWith('~')) return undefined;
  const { field, prefix } = value;
  // The name of a path has a star for each place in an array.
  if (field === 'path' && item !== 'related') return { field, prefix, entity };
  if (prefix.includes('*') || item === 'change') return undefined;
  if (item === undefined && (field === 'actorId' || field === 'onBehalfOf' || field === 'context.ip'))
    return { field, prefix };
  if (item === 'related') return field === 'entity' ? { field: 'related.entity', prefix } : undefined;
  return field === 'entity' || field === 'actor' || field === 'related.entity' ? { field, prefix } : undefined;
}

/** The completions at the caret, given the names that begin like the value there. */
export function suggestionsAt(
  place: CompletionPlace,
  { names, now, rights }: { readonly names: readonly KnownName[]; readonly now: number; readonly rights: QueryRights },
): Suggestion[] {
  return [...valueSuggestions(place, names, now), ...fieldSuggestions(place, rights)];
}

function fieldSuggestions({ field, item, mayEnd }: CompletionPlace, rights: QueryRights): Suggestion[] {
  if (field === undefined) return [];
  const topFields = [...fields, ...(rights.ids ? idFields : []), ...(rights.context ? contextFields : [])];
  const found = (item === undefined ? topFields : itemFields[item])
    .filter(([name]) => name.toLowerCase().startsWith(field.prefix.toLowerCase()))
    .map(([name, hint]) => ({ label: name, hint, insert: `${name}:`, start: field.start }));
  return item !== undefined && mayEnd && field.prefix === ''
    ? [...found, { label: ')', hint: 'ends the conditions', insert: ') ', start: field.start }]
    : found;
}

function valueSuggestions({ value, item }: CompletionPlace, names: readonly KnownName[], now: number): Suggestion[] {
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
  if (field === 'related' || field === 'change') {
    const hint = field === 'related' ? 'one item satisfies all of it' : 'one field satisfies all of it';
    return prefix === '' ? [{ label: 'elemMatch(', hint, insert: 'elemMatch(', start }] : [];
  }
  const known = item === 'change' ? wordsOfChange[field] : wordsOf[field];
  const offered = (known ?? (optionalFields.has(field) ? wordsOfOptional : []))
    .filter(([word]) => word.startsWith(prefix))
    .map(([word, hint]) => ({ label: word, hint, insert: `${word}${after}`, start }));
  if (known !== undefined) return offered;
  const written = field === 'path' ? writtenPath : writtenText;
  const found = names.map(({ name, hint }) => ({ label: name, hint, insert: `${written(name)}${after}`, start }));
  return [...found, ...offered];
}

/** Fields that take some words alone, or give them a meaning of their own. */
type Words = Readonly<Record<string, readonly (readonly [word: string, hint: string])[]>>;

const wordsOf: Words = {
  type: [
    ['create', ''],
    ['update', ''],
    ['delete', ''],
  ],
};

const wordsOfOptional: Fields = [
  ['exists', 'any value'],
  ['missing', 'without one'],
];

const wordsOfChange: Words = {
  before: [
    ['exists', 'any value'],
    ['missing', 'it was not there'],
    ['null', 'it was null'],
  ],
  after: [
    ['exists', 'any value'],
    ['missing', 'it was removed'],
    ['null', 'it became null'],
  ],
  is: [
    ['lower', 'the number became lower'],
    ['higher', 'the number became higher'],
  ],
};
