import { type TInteger, type TSchema, Type } from 'typebox';
import { compiledOnce } from '../core/compiled-once.ts';
import { AnnalsError, type ErrorDetail } from '../core/errors.ts';

/** A value that is not percent-encoded UTF-8: an error only if an operation reads its parameter. */
export class MalformedValue {
  /** Of the first invalid escape: 1-based, in decoded characters. */
  readonly position: number;

  constructor(encoded: string) {
    this.position = positionOfFault(encoded);
  }
}

type QueryValue = string | MalformedValue;

/** Every parameter with all its values, in their order. */
export type QueryParameters = Record<string, QueryValue[] | undefined>;

/**
 * Splits a query string and decodes it strictly. A value that is not UTF-8, for example a lone surrogate, becomes a
 * MalformedValue; a lenient parser would keep its escapes as text.
 */
export function parseQueryString(text: string): QueryParameters {
  const parameters: QueryParameters = Object.create(null);
  if (text === '') return parameters;
  for (const pair of text.split('&')) {
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    if (typeof name !== 'string' || name === '') continue;
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    const values = parameters[name];
    if (values === undefined) parameters[name] = [value];
    else values.push(value);
  }
  return parameters;
}

function decode(text: string): QueryValue {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  return decodeEscapes(spaced) ?? new MalformedValue(spaced);
}

function decodeEscapes(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function positionOfFault(encoded: string): number {
  let position = 1;
  let index = 0;
  while (index < encoded.length) {
    const length = encoded[index] === '%' ? escapeLength(encoded, index) : 1;
    if (decodeEscapes(encoded.slice(index, index + length)) === undefined) break;
    index += length;
    position += 1;
  }
  return position;
}

/** The length of the escapes of one character, in characters. The first byte says how many bytes there are. */
function escapeLength(encoded: string, index: number): number {
  const first = Number.parseInt(encoded.slice(index + 1, index + 3), 16);
  if (first >= 0xf0) return 12;
  if (first >= 0xe0) return 9;
  return first >= 0xc0 ? 6 : 3;
}

interface ParameterSchema {
  type?: string;
  enum?: readonly string[];
  minimum?: number;
  maximum?: number;
  default?: unknown;
  'x-message'?: string;
  'x-message-above'?: string;
  /** The parameter is ignored if one of these is present (contract: pagination, cursor mode). */
  'x-ignored-with'?: readonly string[];
}

interface QuerySchema {
  properties: Record<string, TSchema & ParameterSchema>;
  required?: readonly string[];
}

type ParameterReading = { value: unknown } | { message: string };
type ReadText = (text: string) => ParameterReading;

/**
 * Compiles a route's query schema to a strict reader. Duplicate parameters are errors, unknown ones are ignored. Only
 * the digits of an integer are converted (contract: errors).
 */
export function compileQueryReader(schema: TSchema): (query: unknown) => { value: unknown } | { error: AnnalsError } {
  const { properties, required = [] } = schema as TSchema & QuerySchema;
  const readers = Object.entries(properties).map(([name, property]) => ({
    name,
    isRequired: required.includes(name),
    fallback: property.default,
    ignoredWith: property['x-ignored-with'] ?? [],
    readText: textReader(name, property),
  }));

  return (query) => {
    const parameters = query as QueryParameters;
    const values: Record<string, unknown> = {};
    const details: ErrorDetail[] = [];
    for (const { name, isRequired, fallback, ignoredWith, readText } of readers) {
      if (ignoredWith.some((other) => parameters[other] !== undefined)) continue;
      const reading = readParameter(name, parameters[name], isRequired, fallback, readText);
      if ('message' in reading) details.push({ field: name, message: reading.message });
      else if (reading.value !== undefined) values[name] = reading.value;
    }
    const [first] = details;
    if (first === undefined) return { value: values };
    return { error: new AnnalsError('validation_violation', first.message, { details }) };
  };
}

function readParameter(
  name: string,
  values: QueryParameters[string],
  required: boolean,
  fallback: unknown,
  readText: ReadText,
): ParameterReading {
  if (values === undefined) return required ? { message: `${name} is required` } : { value: fallback };
  const [text] = values;
  if (text === undefined || values.length > 1) return { message: `${name} must be given once` };
  if (text instanceof MalformedValue) {
    return { message: `At position ${text.position}: expected percent-encoded UTF-8` };
  }
  return readText(text);
}

function textReader(name: string, property: TSchema & ParameterSchema): ReadText {
  if (property.type === 'integer') return integerReader(name, property);
  if (property.type !== 'string') throw new Error(`The query parameter ${name} is neither an integer nor a string.`);
  const check = compiledOnce(property);
  const { enum: values, 'x-message': said } = property;
  const message =
    said ?? (values === undefined ? `${name} is not valid` : `${name} must be one of ${values.join(', ')}`);
  return (text) => {
    if (!check().Check(text)) return { message };
    // PostgreSQL cannot store NUL.
    const nul = text.indexOf('\0');
    if (nul === -1) return { value: text };
    return { message: `At position ${[...text.slice(0, nul)].length + 1}: expected a character of Unicode, found NUL` };
  };
}

function integerReader(name: string, property: ParameterSchema): ReadText {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = property;
  const message = property['x-message'] ?? `${name} must be between ${minimum} and ${maximum}`;
  const messageAbove = property['x-message-above'] ?? message;
  return (text) => {
    const value = decimalDigits(text);
    if (value === undefined || value < minimum) return { message };
    return value > maximum ? { message: messageAbove } : { value };
  };
}

interface QueryIntegerOptions {
  minimum: number;
  maximum: number;
  default?: number;
  description?: string;
  /** The message for anything else, if clients match a certain one. */
  message?: string;
  /** The message for a number above the maximum. Default: `message`. */
  messageAbove?: string;
}

/**
 * The schema of an integer in a query string, which has decimal digits only (contract: errors). `compileQueryReader`
 * reads it without coercion.
 */
export function queryInteger({ message, messageAbove, ...options }: QueryIntegerOptions): TInteger {
  return Type.Integer({
    ...options,
    ...(message === undefined ? {} : { 'x-message': message }),
    ...(messageAbove === undefined ? {} : { 'x-message-above': messageAbove }),
  });
}

/** The number of these digits; undefined for `1.0`, `+1`, `1e1`, ` 1` and the empty string. */
function decimalDigits(text: string): number | undefined {
  return /^[0-9]+$/.test(text) ? Number(text) : undefined;
}
