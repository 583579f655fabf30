import * as fc from 'fast-check';
import { seed } from './random.ts';
import { trials } from './trials.ts';

const maxShrinkTime = 30_000;

/**
 * Checks that a law holds for `runs` random values (times `ANNALS_TRIALS`). A failure shows the seed, the path and the
 * smallest value that breaks the law and that could be found within 30 seconds. To repeat it, set `ANNALS_SEED` and
 * `ANNALS_PATH` and run that test alone (`-t`): fast-check then begins with the smallest value.
 *
 * @example
 * await checkLaw(fc.nat(), { runs: 100 }, async (number) => expect(await echo(number)).toBe(number));
 */
export async function checkLaw<Value>(
  values: fc.Arbitrary<Value>,
  { runs, maxShrink = maxShrinkTime }: { runs: number; maxShrink?: number },
  law: (value: Value) => Promise<void>,
): Promise<void> {
  let failedAt: number | undefined;
  const property = fc.asyncProperty(values, async (value) => {
    // fast-check's own limit of time would also end a slow run without a failure, and call that a success.
    if (failedAt !== undefined && performance.now() - failedAt > maxShrink) throw new fc.PreconditionFailure(true);
    try {
      await law(value);
    } catch (error) {
      failedAt ??= performance.now();
      throw error;
    }
  });
  const path = process.env.ANNALS_PATH;
  await fc.assert(property, { numRuns: trials(runs), seed, ...(path === undefined ? {} : { path }) });
}

/** Up to twice as many items as `half`, which shrink to a single one. */
export function someOf<Item>(items: fc.Arbitrary<Item>, half: number): fc.Arbitrary<Item[]> {
  return fc.array(items, { minLength: 1, maxLength: 2 * half, size: 'max' });
}
