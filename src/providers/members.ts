// No answer has more tokens. A larger figure would only make the sums wrong.
const maxFigure = 1_000_000_000_000;

/** Reads a figure of a usage object: an integer from 0, or undefined. Some servers write it as a text. */
export function figure(raw: unknown, name: string): number | undefined {
  const told = memberOf(raw, name);
  const value = typeof told === 'string' && /^\d+$/.test(told) ? Number(told) : told;
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxFigure ? value : undefined;
}

/** The value of a JSON text; undefined where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The member of a value that may be an object. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Reflect.get(value, name);
}
