/** An object of a bucket. */
export interface StoredObject {
  readonly key: string;
  /** Positions of its first and last change. */
  readonly first: number;
  readonly last: number;
  readonly changes: number;
  /** SHA-256 of the uncompressed text, in hexadecimal digits. */
  readonly sha256: string;
}

/** The JSON text of a manifest: the objects that began on a UTC day, in order. Deterministic. */
export function manifestText(
  { tenant, subscription, date }: { tenant: string; subscription: string; date: string },
  objects: readonly StoredObject[],
): string {
  const changes = objects.reduce((sum, object) => sum + object.changes, 0);
  const head = JSON.stringify({ version: 1, tenant, subscription, date, changes });
  const lines = objects.map((object) => JSON.stringify(object));
  return `${head.slice(0, -1)},"objects":[${lines.length === 0 ? '' : `\n${lines.join(',\n')}\n`}]}\n`;
}

/** The UTC day of a time in milliseconds: `2026-11-23`. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 'YYYY-MM-DD'.length);
}

const dayMilliseconds = 86_400_000;

/** When a UTC day begins, in milliseconds. */
export function startOfDay(day: string): number {
  return Date.parse(`${day}T00:00:00Z`);
}

export function nextDay(day: string): string {
  return dayOf(startOfDay(day) + dayMilliseconds);
}
