/** Missing in the runtime's types: https://tc39.es/proposal-json-parse-with-source/ */
interface JsonWithSource {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
}

const json = JSON as unknown as JsonWithSource;

/**
 * Parses JSON so that `JSON.stringify` writes each number as it came. A number that it would write differently is an
 * object.
 *
 * @example
 * JSON.stringify(parseExactNumbers('[1, 1.10, 9007199254740993]')); // '[1,1.10,9007199254740993]'
 */
export function parseExactNumbers(text: string): unknown {
  return json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? json.rawJSON(source) : value,
  );
}

/** A number as JSON writes one (RFC 8259). */
export function isJsonNumber(text: string): boolean {
  return jsonNumber.test(text);
}

/** The limits of a number in a document and in a query: the database's exact numbers cannot hold values beyond them. */
export const numberLimits = { digits: 500, exponent: 9_999 } as const;

/** Whether a JSON number is within the limits: its significant digits, and the power of ten of the first of them. */
export function keepsNumberLimits(text: string): boolean {
  const [mantissa = '', exponent = '0'] = text.split(/[eE]/);
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const leading = (whole + fraction).replace(/^0+/, '');
  const digits = leading.replace(/0+$/, '');
  if (digits === '') return true;
  const first = whole.length + leading.length - (whole + fraction).length - 1;
  return digits.length <= numberLimits.digits && Math.abs(Number(exponent) + first) <= numberLimits.exponent;
}

const jsonNumber = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
