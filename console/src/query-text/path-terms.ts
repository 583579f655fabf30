import { JsonNumber, type JsonValue } from '@annals/client/json';
import { mask } from '../data/json-editor/document-text.ts';
import { quoted } from './quoted.ts';
import { writtenValue } from './written-value.ts';

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

/** Names that a value without quotes can hold, where `*` stands for the place. */
const plainName = /^[\p{L}\p{N}_@.#/+'&*-]+$/u;

/**
 * The name of a path as a value of `path`, each `*` for any place in an array.
 *
 * @example
 * writtenPath('price.amount'); // price.amount
 * writtenPath('lines.*.unit price'); // ~"^lines\\.[0-9]+\\.unit price$"
 */
export function writtenPath(name: string): string {
  if (!/(?:^|\.)\*(?=\.|$)/.test(name)) return writtenValue(name);
  if (plainName.test(name)) return name;
  const pattern = name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll(/(^|\\\.)\\\*(?=\\\.|$)/g, '$1[0-9]+');
  return `~${quoted(`^${pattern}$`)}`;
}

/** Texts that without quotes would be another value, or a condition. */
const otherValue = /^(?:-?\d|(?:true|false|null|exists|missing)$)/;

/** Characters of a value that still fits into a query, beside its other terms. */
const maxLength = 400;

/**
 * A value of a document as the value of `before` or `after`; undefined for one that a query cannot ask for: an object, a list,
 * a masked or a long value, a text that no query may hold.
 */
export function writtenScalar(value: JsonValue): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value);
  if (value instanceof JsonNumber) return value.text.length > maxLength ? undefined : value.text;
  if (typeof value !== 'string' || value === mask || value.length > maxLength) return undefined;
  if (value.includes('\0') || !value.isWellFormed()) return undefined;
  return otherValue.test(value) ? quoted(value) : writtenValue(value);
}
