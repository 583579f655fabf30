export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** NaN where there are none, which becomes null on its way to another process. */
export function maxOf(values: readonly number[]): number {
  return quantile(values, 1);
}
