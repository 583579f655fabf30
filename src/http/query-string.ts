/** Stands for a value that is not percent-encoded UTF-8; only a parameter somebody reads makes it an error. */
export const malformed = Symbol('malformed percent-encoding');

export type QueryValue = string | typeof malformed;

/** Every parameter with all its values, in the order they came. */
export type QueryParameters = Record<string, QueryValue[] | undefined>;

/**
 * Splits a query string and decodes it strictly: bytes that are no UTF-8 (a lone surrogate among them) are told from
 * text, where a lenient parser would hand on their escapes as if somebody had asked for a percent sign.
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
  try {
    return decodeURIComponent(spaced);
  } catch {
    return malformed;
  }
}
