/** A value that is not percent-encoded UTF-8. It is an error only where an operation reads its parameter. */
export class MalformedValue {
  /** Where the first wrong escape stands: 1-based, in characters of the decoded text before it. */
  readonly position: number;

  constructor(encoded: string) {
    this.position = positionOfFault(encoded);
  }
}

export type QueryValue = string | MalformedValue;

/** Every parameter with all its values, in their order. */
export type QueryParameters = Record<string, QueryValue[] | undefined>;

/**
 * Splits a query string and decodes it strictly. A value that is not UTF-8, a lone surrogate for example, becomes a
 * MalformedValue. A lenient parser would keep its escapes as text.
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
