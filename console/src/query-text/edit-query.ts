import { JsonNumber, type JsonValue } from '@annals/client/json';
import { scanQuery, type Term } from '../../../src/query/scan.ts';
import { bareParts, literalSource, quoted, unquoted, writtenValue } from '../../../src/query/written.ts';
import type { TimeBounds } from '../components/times.ts';
import { mask } from '../data/json-editor/document-text.ts';

/** Without their term these others are refused: an `entityId` names a document only together with its `entity`. */
const dependent: Readonly<Record<string, readonly string[]>> = { entity: ['entityId'] };

/** The terms outside of groups. Only these are shown as chips and changed by a click. */
export function topTerms(q: string): Term[] {
  return scanQuery(q).terms.filter(({ depth }) => depth === 0);
}

/** The query without one of its terms, and without those that need it. */
export function withoutTerm(q: string, term: Term): string {
  const needing = dependent[term.field] ?? [];
  const isLast = topTerms(q).filter(({ field }) => field === term.field).length === 1;
  const gone = topTerms(q).filter((item) => item.start === term.start || (isLast && needing.includes(item.field)));
  return without(q, gone);
}

/** Fields that an entry may lack, where bare `exists` and `missing` are conditions. */
const optionalField = /^(?:actorId|onBehalfOf|onBehalfOfId|correlationId|context\..+)$/;

/** A text that a term compares its field with, or one of these conditions. */
interface TermItem {
  readonly text: string;
  readonly isCondition: boolean;
}

/**
 * The texts that a term compares its field with; undefined where it has a pattern, a range or a group.
 *
 * @example
 * valuesOf('type:(create, delete)', term); // ['create', 'delete']
 * valuesOf('actorId:(u-17, missing)', term); // ['u-17']
 */
export function valuesOf(q: string, term: Term): string[] | undefined {
  return itemsOf(q, term)?.flatMap(({ text, isCondition }) => (isCondition ? [] : [text]));
}

function itemsOf(q: string, { field, valueStart, end }: Term): TermItem[] | undefined {
  const written = q.slice(valueStart, end);
  const { tokens } = scanQuery(q);
  const inside = tokens.filter((token) => token.start >= valueStart && token.end <= end);
  const values = inside.filter(({ kind }) => kind === 'value' || kind === 'quoted');
  if (written.startsWith('<') || written.startsWith('>') || /^\([<>]/.test(written)) return undefined;
  const items = values.flatMap(({ kind, start, end: stop }): TermItem[] => {
    const text = plainText(kind, q.slice(start, stop));
    if (text === undefined) return [];
    return [{ text, isCondition: kind === 'value' && optionalField.test(field) && isConditionWord(text) }];
  });
  const marksFit = inside.every(({ kind }) => kind === 'value' || kind === 'quoted' || kind === 'mark');
  if (!marksFit || values.length === 0 || written.startsWith('~')) return undefined;
  return items.length === values.length ? items : undefined;
}

function isConditionWord(text: string): boolean {
  return text === 'exists' || text === 'missing';
}

function plainText(kind: string, written: string): string | undefined {
  if (kind === 'quoted') return unquoted(written);
  const parts = bareParts(written);
  return parts.length === 1 ? parts[0] : undefined;
}

/** The texts that the top terms of a field ask for, or undefined where they ask for something else. */
export function chosenValues(q: string, field: string): string[] | undefined {
  return chosenItems(q, field)?.flatMap(({ text, isCondition }) => (isCondition ? [] : [text]));
}

function chosenItems(q: string, field: string): TermItem[] | undefined {
  const terms = topTerms(q).filter((term) => term.field === field);
  if (terms.length !== 1 || terms[0] === undefined) return terms.length === 0 ? [] : undefined;
  return itemsOf(q, terms[0]);
}

/** The query with exactly these values of a field; with none, without the field. */
export function withValues(q: string, field: string, values: readonly string[]): string {
  return withWritten(q, field, values.map(writtenText));
}

/** The same with values as the query language writes them. */
function withWritten(q: string, field: string, values: readonly string[]): string {
  const terms = topTerms(q).filter((term) => term.field === field);
  const [first] = terms;
  if (values.length === 0) return first === undefined ? q : without(q, [...terms, ...dependentsOf(q, field)]);
  const written = `${field}:${values.length === 1 ? values[0] : `(${values.join(', ')})`}`;
  if (first === undefined) return joined(q, written);
  const rest = without(q, terms.slice(1));
  return tidy(`${rest.slice(0, first.start)}${written} ${rest.slice(first.end).trimStart()}`);
}

/**
 * Adds a value to those of its field, or takes it away; conditions stay. A pattern of that field gives way to the value.
 */
export function toggleValue(q: string, field: string, value: string): string {
  const chosen = chosenItems(q, field) ?? [];
  const rest = chosen.filter(({ text, isCondition }) => isCondition || text !== value);
  const written = rest.map(({ text, isCondition }) => (isCondition ? text : writtenText(text)));
  return withWritten(q, field, rest.length < chosen.length ? written : [...written, writtenText(value)]);
}

/**
 * The values of the one top term of a field, as they are written: the items of a list, or all that follows the colon.
 */
export function writtenItems(q: string, field: string): string[] {
  const [term, ...further] = topTerms(q).filter((item) => item.field === field);
  if (term === undefined || further.length > 0) return [];
  const written = q.slice(term.valueStart, term.end);
  if (!written.startsWith('(')) return [written];
  return scanQuery(q)
    .tokens.filter(({ kind, start, end }) => start > term.valueStart && end < term.end && kind !== 'mark')
    .map(({ start, end }) => q.slice(start, end));
}

/** Adds a path to those of the query, or removes it. A pattern is alone: a list has none. */
export function togglePath(q: string, written: string): string {
  const items = writtenItems(q, 'path');
  if (items.includes(written))
    return withWritten(
      q,
      'path',
      items.filter((item) => item !== written),
    );
  const isPattern = [...items, written].some((item) => item.startsWith('~'));
  return withWritten(q, 'path', isPattern ? [written] : [...items, written]);
}

/** The query over this time. Bounds are RFC 3339; without both, the query looks at the last 30 days. */
export function withTime(q: string, bounds: TimeBounds): string {
  return joined(without(q, timeTerms(q)), writtenTime(bounds));
}

/** The bounds of a query’s time; empty without one. Undefined for two terms, no beginning, or another comparison. */
export function boundsOfTime(q: string): TimeBounds | undefined {
  const [term, ...more] = timeTerms(q);
  if (term === undefined) return {};
  const [, alone, first, before] = plainTime.exec(q.slice(term.valueStart, term.end)) ?? [];
  const from = alone ?? first;
  return from === undefined || more.length > 0 ? undefined : { from, before };
}

const plainTime = /^(?:>="([^"]*)"|\(>="([^"]*)" AND <"([^"]*)"\))$/;

/** Whether the query looks at exactly this time. */
export function hasTime(q: string, bounds: TimeBounds): boolean {
  const written = timeTerms(q).map(({ start, end }) => q.slice(start, end));
  return written.join(' ') === writtenTime(bounds);
}

function timeTerms(q: string): Term[] {
  return topTerms(q).filter(({ field }) => field === 'occurredAt');
}

/** The term of a time; empty without bounds. */
export function writtenTime(bounds: TimeBounds): string {
  const written = writtenBounds(bounds);
  return written === '' ? '' : `occurredAt:${written}`;
}

/** Bounds as the value of `occurredAt`; empty without any. */
export function writtenBounds({ from, before }: TimeBounds): string {
  const bounds = [...(from === undefined ? [] : [`>="${from}"`]), ...(before === undefined ? [] : [`<"${before}"`])];
  return bounds.length < 2 ? bounds.join('') : `(${bounds.join(' AND ')})`;
}

/** Whether the query has a from-bound of its own in place of the service's window of 30 days. */
export function hasFromBound(q: string): boolean {
  return topTerms(q).some(
    ({ field, valueStart, end }) => field === 'occurredAt' && q.slice(valueStart, end).includes('>'),
  );
}

/** The query with one term more. */
export function joined(q: string, term: string): string {
  return tidy(`${q} ${term}`);
}

function dependentsOf(q: string, field: string): Term[] {
  const needing = dependent[field] ?? [];
  return topTerms(q).filter((term) => needing.includes(term.field));
}

function without(q: string, terms: readonly Term[]): string {
  let rest = q;
  for (const { start, end } of terms.toSorted((a, b) => b.start - a.start)) {
    rest = `${rest.slice(0, start).trimEnd()} ${rest.slice(end).trimStart()}`;
  }
  return tidy(rest);
}

function tidy(q: string): string {
  return q.trim();
}

/** A segment that is written as a place in an array, after the dot before it, which no backslash escapes. */
const place = /(^|(?<!\\)(?:\\\\)*\.)(?:0|[1-9][0-9]*)(?=\.|$)/g;

/**
 * The name of a path as the service lists it: each place in an array is `*`.
 *
 * @example
 * nameOfPath('items.0.quantity'); // 'items.*.quantity'
 */
export function nameOfPath(path: string): string {
  return path.replaceAll(place, '$1*');
}

/** Names that a value without quotes can hold, where `*` matches any place. */
const plainPath = /^[\p{L}\p{N}_@.#/+'&*-]+$/u;

/**
 * The name of a path as a value of `path`, each `*` for any place in an array.
 *
 * @example
 * writtenPath('price.amount'); // price.amount
 * writtenPath('lines.*.unit price'); // ~"^lines\\.[0-9]+\\.unit price$"
 */
export function writtenPath(name: string): string {
  if (!/(?:^|\.)\*(?=\.|$)/.test(name)) return writtenValue(name);
  if (plainPath.test(name)) return name;
  const pattern = literalSource(name).replaceAll(/(^|\\\.)\\\*(?=\\\.|$)/g, '$1[0-9]+');
  return `~${quoted(`^${pattern}$`)}`;
}

/**
 * A text as a value of a field that an entry may lack: bare `exists` and `missing` are conditions.
 *
 * @example
 * writtenText('missing'); // "missing"
 */
export function writtenText(text: string): string {
  return isConditionWord(text) ? quoted(text) : writtenValue(text);
}

/** Texts that without quotes would be another value, or a condition. */
const otherValue = /^(?:-?\d|(?:true|false|null|exists|missing)$)/;

/** Characters of a value that still fits into a query, beside its other terms. */
const maxLength = 400;

/** A value of a document as the value of `before` or `after`; undefined for one that a query cannot have. */
export function writtenScalar(value: JsonValue): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value);
  if (value instanceof JsonNumber) return value.text.length > maxLength ? undefined : value.text;
  if (typeof value !== 'string' || value === mask || value.length > maxLength) return undefined;
  if (value.includes('\0') || !value.isWellFormed()) return undefined;
  return otherValue.test(value) ? quoted(value) : writtenValue(value);
}
