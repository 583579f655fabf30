/**
 * Whether a number is a whole multiple of another one, both as the decimals that they are written as: 19.99 is a multiple
 * of 0.01, although the quotient of the doubles is 1998.9999999999998. `divisor` is above 0.
 */
export function isMultipleOf(divisor: number, value: number): boolean {
  // 1e400 is a valid JSON number, but not a finite double. Nobody can say what it is a multiple of, and of it only 0 is one.
  if (!Number.isFinite(value)) return false;
  if (!Number.isFinite(divisor)) return value === 0;
  const one = decimalOf(value);
  const other = decimalOf(divisor);
  const exponent = Math.min(one.exponent, other.exponent);
  return scaled(one, exponent) % scaled(other, exponent) === 0n;
}

/** The number is `digits * 10 ** exponent`. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/** Of the shortest text that names the double. */
function decimalOf(value: number): Decimal {
  const [mantissa = '', power = '0'] = value.toExponential().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}

/** The digits in units of `10 ** exponent`. Exponents of doubles are within ±350, so the power is short. */
function scaled(decimal: Decimal, exponent: number): bigint {
  return decimal.digits * 10n ** BigInt(decimal.exponent - exponent);
}
