/** How many random queries a test tries; `ANNALS_FUZZ_RUNS` makes it more for a run by hand. */
export function fuzzRuns(usual: number): number {
  return Number(process.env.ANNALS_FUZZ_RUNS ?? usual);
}

/** Milliseconds that so many runs may take before the test is given up. */
export function fuzzTimeout(usual: number): number {
  return 60_000 + fuzzRuns(usual);
}
