/**
 * The number that Kafka Connect writes as an unscaled two's-complement integer in base64.
 *
 * @example
 * decimalText('MDk=', 2); // '123.45'
 */
export function decimalText(base64: string, scale: number): string {
  const bytes = Buffer.from(base64, 'base64');
  let unscaled = bytes.length === 0 ? 0n : BigInt(`0x${bytes.toString('hex')}`);
  if (((bytes[0] ?? 0) & 0x80) !== 0) unscaled -= 1n << BigInt(bytes.length * 8);
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString();
  const sign = unscaled < 0n ? '-' : '';
  if (scale <= 0) return `${sign}${digits === '0' ? '0' : digits + '0'.repeat(-scale)}`;
  const padded = digits.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}
