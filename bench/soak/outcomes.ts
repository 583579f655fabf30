const historyAway = 'Problem encountered while trying to retrieve changelog history.';

/** What became of the calls, by operation. */
export class Outcomes {
  readonly #counts = new Map<string, number>();

  add(operation: string, outcome: string | number): void {
    const key = `${operation}: ${outcome}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** What the service should not have answered. While the database is away, the change history answers 500 with this message. */
  get failures(): string[] {
    return this.lines.filter(
      (line) => /: (?:500|502|504|4\d\d|no answer|without)/.test(line) && !line.includes(historyAway),
    );
  }

  /** How many calls there were. */
  get total(): number {
    return this.#counts.values().reduce((sum, count) => sum + count, 0);
  }

  get lines(): string[] {
    return [...this.#counts].sort().map(([key, count]) => `${key} × ${count}`);
  }
}
