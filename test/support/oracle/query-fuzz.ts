/** How many random queries a test tries; `ANNALS_FUZZ_RUNS` makes it more for a run by hand. */
export function fuzzRuns(usual: number): number {
  return Number(process.env.ANNALS_FUZZ_RUNS ?? usual);
}

/** A new seed each time, printed so that a failure can be had again with `ANNALS_FUZZ_SEED`. */
export function fuzzSeed(title: string): number {
  const seed = Number(process.env.ANNALS_FUZZ_SEED ?? Date.now() % 0x7fffffff);
  console.info(`${title}: ANNALS_FUZZ_SEED=${seed}`);
  return seed;
}

/** Milliseconds that so many runs may take before the test is given up. */
export function fuzzTimeout(usual: number): number {
  return 60_000 + fuzzRuns(usual);
}
