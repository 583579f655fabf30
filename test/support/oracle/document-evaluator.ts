import { RE2JS } from 're2js';
import type { Bound, DocumentCondition, DocumentQuery, Glob, Text } from '../../../src/query/ast.ts';
import {
  compareCodePoints,
  compareNumbers,
  isNumber,
  isObject,
  type JsonModel,
  type JsonObject,
  valueAt,
  valuesAt,
} from './json-model.ts';

export interface SortedField {
  readonly path: readonly string[];
  readonly descending: boolean;
}

export interface ModelDocument {
  readonly id: string;
  readonly content: JsonObject;
}

/** Whether a query finds a document: a plain evaluator that shares no code with the service. */
export function finds(query: DocumentQuery, { id, content }: ModelDocument): boolean {
  return holds(query, { members: { ...content.members, id, _id: id } });
}

function holds(condition: DocumentCondition, document: JsonObject): boolean {
  if (condition.kind === 'and') return condition.operands.every((operand) => holds(operand, document));
  if (condition.kind === 'or') return condition.operands.some((operand) => holds(operand, document));
  const values = valuesOfField(document, condition.field);
  if (condition.kind === 'comparison') {
    return values.some((value) => condition.bounds.every((bound) => liesWithin(value, bound)));
  }
  const { matcher } = condition;
  if (matcher.kind === 'regex') {
    return values.some((value) => typeof value === 'string' && RE2JS.compile(matcher.source).test(value));
  }
  const direct = valuesAt(document, condition.field.split('.'));
  return (matcher.kind === 'list' ? matcher.items : [matcher]).some((item) => accepts(item, direct, values));
}

/** The values that a term compares. A term on a name that is a map looks into each language. */
function valuesOfField(document: JsonObject, field: string): readonly JsonModel[] {
  const values = valuesAt(document, field.split('.'));
  const map = document.members[field];
  return field === 'name' && isObject(map) ? [...values, ...Object.values(map.members)] : values;
}

function accepts(item: Text | Glob, direct: readonly JsonModel[], values: readonly JsonModel[]): boolean {
  if (item.kind === 'text' && !item.quoted) {
    if (item.text === 'exists') return direct.length > 0;
    if (item.text === 'missing') return direct.length === 0;
    if (item.text === 'null') return direct.length === 0 || direct.includes(null);
  }
  return values.some((value) => equals(item, value));
}

function equals(item: Text | Glob, value: JsonModel): boolean {
  if (item.kind === 'glob') {
    const pattern = item.parts.map((part) =>
      part.replaceAll(/[^A-Za-z0-9]/gu, (found) => `\\u{${found.codePointAt(0)?.toString(16)}}`),
    );
    return typeof value === 'string' && new RegExp(`^${pattern.join('.*')}$`, 'su').test(value);
  }
  if (item.quoted) return value === item.text;
  if (item.text === 'true' || item.text === 'false') return value === (item.text === 'true');
  if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(item.text)) {
    return isNumber(value) && compareNumbers(value.number, item.text) === 0;
  }
  return value === item.text;
}

function liesWithin(value: JsonModel, { operator, type, text }: Bound): boolean {
  let order: number;
  if (type === 'number' && isNumber(value)) order = compareNumbers(value.number, text);
  else if (type === 'string' && typeof value === 'string') order = compareCodePoints(value, text);
  else return false;
  return order === 0 ? operator.endsWith('=') : operator.startsWith(order > 0 ? '>' : '<');
}

/** The order of two documents (contract 10), with the id last. */
export function compareDocuments(sort: readonly SortedField[], one: ModelDocument, other: ModelDocument): number {
  for (const { path, descending } of sort) {
    const order =
      path[0] === '_id' && path.length === 1
        ? compareCodePoints(one.id, other.id)
        : compareValues(valueAt(one.content, path), valueAt(other.content, path));
    if (order !== 0) return descending ? -order : order;
  }
  return compareCodePoints(one.id, other.id);
}

function compareValues(one: JsonModel | undefined, other: JsonModel | undefined): number {
  const difference = groupOf(one) - groupOf(other);
  if (difference !== 0) return Math.sign(difference);
  if (isNumber(one) && isNumber(other)) return compareNumbers(one.number, other.number);
  if (typeof one === 'boolean') return Number(one) - Number(other);
  return compareCodePoints(firstOf(one), firstOf(other));
}

function groupOf(value: JsonModel | undefined): number {
  if (typeof value === 'string') return 0;
  if (isNumber(value)) return 1;
  if (typeof value === 'boolean') return 2;
  if (Array.isArray(value)) return 3;
  return isObject(value) ? 4 : 5;
}

/** The first 128 characters of a string, or of canonical JSON (RFC 8785, but numbers exact). */
function firstOf(value: JsonModel | undefined): string {
  const text = value === undefined || value === null ? '' : typeof value === 'string' ? value : canonical(value);
  return [...text].slice(0, 128).join('');
}

function canonical(value: JsonModel): string {
  if (isNumber(value)) return canonicalNumber(value.number);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value.members).sort(([one], [other]) => compareCodePoints(one, other));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}

/** As JavaScript writes a number, but with all of its digits. */
function canonicalNumber(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const zeros = /^0*/.exec(whole + fraction)?.[0].length ?? 0;
  const digits = (whole + fraction).slice(zeros).replace(/0+$/, '');
  if (digits === '') return '0';
  const point = whole.length - zeros + Number(exponent);
  if (point > 21 || point < -5) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : '';
    return `${sign}${digits.slice(0, 1)}${rest}e${point > 0 ? '+' : ''}${point - 1}`;
  }
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  const padded = digits.padEnd(point, '0');
  return sign + padded.slice(0, point) + (padded.length > point ? `.${padded.slice(point)}` : '');
}
