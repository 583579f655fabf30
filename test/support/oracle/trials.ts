/**
 * How often a test repeats a random or racy attempt: `count`, times `ANNALS_TRIALS` if that is set.
 *
 * @example
 * ANNALS_TRIALS=30 npx vitest run test/pagination
 */
export function trials(count: number): number {
  return Math.ceil(count * Number(process.env.ANNALS_TRIALS ?? 1));
}
