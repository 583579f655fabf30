/** Work in steps of less than a millisecond. The caller may do something else between two steps. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Milliseconds for which steps run before the next pause. */
const maxSlice = 8;

/** Runs all steps at once. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/**
 * Runs steps for so many milliseconds, or until the last one.
 *
 * @example
 * const { done, value } = advance(steps, 8); // done false: there is more to do
 */
export function advance<Result>(steps: Steps<Result>, milliseconds: number): IteratorResult<undefined, Result> {
  const begun = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true || performance.now() - begun >= milliseconds) return step;
  }
}

/**
 * Runs steps, and waits for `pause` whenever they have run for 8 ms. Where `pause` rejects, the work ends with that
 * error.
 *
 * @example
 * const value = await finishInSlices(parseJsonSteps(text), () => new Promise((resolve) => setTimeout(resolve)));
 */
export async function finishInSlices<Result>(steps: Steps<Result>, pause: () => Promise<void>): Promise<Result> {
  for (;;) {
    const { done, value } = advance(steps, maxSlice);
    if (done === true) return value;
    await pause();
  }
}
