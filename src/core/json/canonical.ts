/**
 * The canonical text of a JSON value (RFC 8785): without whitespace, members sorted by the UTF-16 code units of their
 * keys, strings and numbers as ECMAScript writes them. The same value has the same text, whatever the order of its
 * keys. What that RFC refuses (infinite numbers, lone surrogates) is written as `JSON.stringify` writes it.
 *
 * @example
 * canonicalJson({ b: 1e2, a: ['é'] }); // '{"a":["é"],"b":100}'
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  // `sort` compares code units. Members that are undefined are none.
  const keys = Object.keys(value).sort();
  const members = new Map<string, unknown>(Object.entries(value));
  return `{${keys
    .filter((key) => members.get(key) !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(members.get(key))}`)
    .join(',')}}`;
}
