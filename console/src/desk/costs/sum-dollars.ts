/** The sum of US dollars with all of their digits, which are those of pico-dollars. */
export function sumDollars(costs: readonly string[]): string {
  const digits = String(costs.reduce((sum, cost) => sum + picoOf(cost), 0n)).padStart(13, '0');
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, '');
}

function picoOf(dollars: string): bigint {
  const [whole = '', fraction = ''] = dollars.split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}
