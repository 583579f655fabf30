/**
 * How often a test tries what is random or a matter of luck: the count given, times `ANNALS_TRIALS` in a run by hand.
 *
 * @example
 * ANNALS_TRIALS=30 npx vitest run test/pagination
 */
export function trials(count: number): number {
  return Math.ceil(count * Number(process.env.ANNALS_TRIALS ?? 1));
}
