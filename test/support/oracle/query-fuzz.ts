/** How many random queries a test tries; `ANNALS_FUZZ_RUNS` makes it more for a run by hand. */
export function fuzzRuns(defaultRuns: number): number {
  return Number(process.env.ANNALS_FUZZ_RUNS ?? defaultRuns);
}

/** Milliseconds that so many runs may take before the test is given up. */
export function fuzzTimeout(defaultRuns: number): number {
  return 60_000 + fuzzRuns(defaultRuns);
}
