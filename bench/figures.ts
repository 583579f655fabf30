/** The value below which that share of the values lies; NaN without values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** A line such as `median 7 ms, p99 64 ms, max 334 ms`. */
export function spread(milliseconds: readonly number[]): string {
  const at = (share: number) => quantile(milliseconds, share).toFixed(0);
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
}

/** Prints a table in Markdown; a column of numbers is aligned to the right. */
export function printTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |\n`;
  const isNumber = (column: number) =>
    rows.length > 0 && rows.every((row) => /^-?[\d.,]+$/.test(`${row[column] ?? 0}`));
  process.stdout.write(
    `${line(head)}|${head.map((_, column) => (isNumber(column) ? '---:|' : '---|')).join('')}\n${rows.map(line).join('')}`,
  );
}
