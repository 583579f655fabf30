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
