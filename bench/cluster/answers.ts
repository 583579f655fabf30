/** What became of one call. */
export interface Answer {
  tenant: string;
  operation: string;
  /** `performance.now()` when the call began, and milliseconds until its answer was complete. */
  begun: number;
  took: number;
  /** 0: the connection broke. */
  status: number;
}

/** The answers of a run, in the order in which they came. */
export class Answers {
  readonly all: Answer[] = [];

  add(answer: Answer): void {
    this.all.push(answer);
  }

  /** The answers of some tenants to calls that began between two moments. */
  between(tenants: readonly string[], begin: number, end: number): Answer[] {
    return this.all.filter(({ tenant, begun }) => tenants.includes(tenant) && begun >= begin && begun < end);
  }
}

/** How many answers of each status there are, such as `200 × 12, 503 × 3`. */
export function statusesOf(answers: readonly Answer[]): string {
  const counts = new Map<number, number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts]
    .sort(([one], [other]) => one - other)
    .map(([status, count]) => `${status === 0 ? 'broken' : status} × ${count}`)
    .join(', ');
}

/** Milliseconds of the slowest call but one of a hundred, of those that succeeded. */
export function p99Of(answers: readonly Answer[]): number {
  const took = answers.filter(isSuccess).map((answer) => answer.took);
  took.sort((one, other) => one - other);
  return took[Math.floor(took.length * 0.99)] ?? Number.NaN;
}

export function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}
