/** A query for what happened at a time or later; in milliseconds since 1970. */
export function sinceQuery(from: number): string {
  return `occurredAt:>="${new Date(from).toISOString()}"`;
}
