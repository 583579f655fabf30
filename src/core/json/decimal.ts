/** The parts of a number as it was written: its value is 0.DIGITS * 10^(exponent + shift), negative or not. */
interface Decimal {
  isNegative: boolean;
  /** Without zeros at either end; empty for zero. */
  digits: string;
  /** The exponent of the text: a sign and any number of digits. */
  exponent: string;
  /** What the position of the decimal point adds to the exponent. */
  shift: number;
}

/**
 * Whether two JSON numbers have the same decimal value: 1.10 = 11e-1, -0 = 0, 9007199254740993 ≠ 9007199254740992. The
 * result is exact. The time is linear in the text for every exponent, because no power is ever calculated.
 */
export function isSameDecimal(first: string, second: string): boolean {
  const one = decimalOf(first);
  const other = decimalOf(second);
  if (one.digits !== other.digits) return false;
  if (one.digits === '') return true;
  if (one.isNegative !== other.isNegative) return false;
  return exponentDifference(one.exponent, other.exponent) === other.shift - one.shift;
}

function decimalOf(text: string): Decimal {
  const isNegative = text.startsWith('-');
  const mark = text.search(/[eE]/);
  const mantissa = text.slice(isNegative ? 1 : 0, mark === -1 ? text.length : mark);
  const point = mantissa.indexOf('.');
  const whole = point === -1 ? mantissa : mantissa.slice(0, point);
  const all = point === -1 ? whole : whole + mantissa.slice(point + 1);
  let start = 0;
  while (start < all.length && all.charCodeAt(start) === 0x30) start += 1;
  let end = all.length;
  while (end > start && all.charCodeAt(end - 1) === 0x30) end -= 1;
  return {
    isNegative,
    digits: all.slice(start, end),
    exponent: mark === -1 ? '0' : text.slice(mark + 1),
    shift: whole.length - start,
  };
}

/** If two exponents differ by more than this, no position of the decimal point can make the numbers equal. */
const farApart = 2 ** 31;

/** `first - second`, or infinity if they are far apart. It starts at the highest digit, so it never overflows. */
function exponentDifference(first: string, second: string): number {
  const firstSign = first.startsWith('-') ? -1 : 1;
  const secondSign = second.startsWith('-') ? -1 : 1;
  const firstDigits = first.replace(/^[+-]/, '');
  const secondDigits = second.replace(/^[+-]/, '');
  const places = Math.max(firstDigits.length, secondDigits.length);
  let difference = 0;
  for (let place = places; place > 0; place -= 1) {
    difference = difference * 10 + firstSign * digitAt(firstDigits, place) - secondSign * digitAt(secondDigits, place);
    if (Math.abs(difference) > farApart) return Number.POSITIVE_INFINITY;
  }
  return difference;
}

/** The digit at a position from the right; the first position is 1. */
function digitAt(digits: string, place: number): number {
  return place > digits.length ? 0 : digits.charCodeAt(digits.length - place) - 0x30;
}
