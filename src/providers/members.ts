/** No answer has more tokens. A larger figure would only corrupt the sums. */
export const maxFigure = 1_000_000_000_000;

/** Reads a figure of a usage object: a non-negative integer, or undefined. Some servers send it as a string. */
export function figure(raw: unknown, name: string): number | undefined {
  const member = memberOf(raw, name);
  const value = typeof member === 'string' && /^\d+$/.test(member) ? Number(member) : member;
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxFigure ? value : undefined;
}

/** The usage object so far with the figures of a later one. Null stands for no figure. */
export function laterUsage(known: object, later: unknown): object {
  if (typeof later !== 'object' || later === null) return known;
  return { ...known, ...Object.fromEntries(Object.entries(later).filter(([, count]) => count !== null)) };
}

/** Parses a JSON text; undefined where it is malformed. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The member of a value, if the value is an object. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Reflect.get(value, name);
}
