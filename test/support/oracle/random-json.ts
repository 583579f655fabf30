import type { Random } from './random.ts';

/** A JSON text with unusual spacing, escapes and numbers. */
export function randomJson(random: Random, depth = 0): string {
  const blank = () => random.pick(['', '', ' ', '\n\t']);
  const scalars = ['9007199254740993', '1.10', '-0', '1E+2', 'true', 'null', '"\\u00e9\\/ \\"x"', '"Łódź 😀"', '""'];
  const kind = depth > 2 ? 0 : random.below(3);
  const parts = Array.from({ length: kind === 0 ? 0 : random.below(3) }, () => randomJson(random, depth + 1));
  if (kind === 0) return random.pick(scalars);
  if (kind === 1) return `[${blank()}${parts.join(`${blank()},${blank()}`)}${blank()}]`;
  return `{${parts.map((part, index) => `${blank()}"a.${index}"${blank()}:${blank()}${part}`).join(',')}${blank()}}`;
}
