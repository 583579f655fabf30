import { parseInstant } from '../../query/instant.ts';

const maxDays = 36_500;

/** What a range must be, for messages. */
export const rangeForms = `today, yesterday, all, P1D to P${maxDays}D, or two times such as 2026-06-01T00:00:00Z/2026-07-01T00:00:00Z, the second may be ..`;

/** What every range looks like. */
export const rangePattern = '^(?:today|yesterday|all|P([1-9][0-9]{0,4})D|([^/]+)/([^/]+))$';

/**
 * What is wrong with the range of a view, or undefined. A range is a day by the reader's clock (`today`, `yesterday`), a number of
 * days until now (ISO 8601: `P7D`), two moments (ISO 8601: `2026-06-01T00:00:00Z/2026-07-01T00:00:00Z`, from the first on and before
 * the second; `..` in its place: without an end), or `all`.
 */
export function faultOfRange(range: string): string | undefined {
  const parts = new RegExp(rangePattern).exec(range);
  const [days, first, second] = parts?.slice(1) ?? [];
  if (parts === null || Number(days) > maxDays) return `must be ${rangeForms}`;
  if (first === undefined || second === undefined) return undefined;
  const from = parseInstant(first);
  const before = second === '..' ? undefined : parseInstant(second);
  if (typeof from === 'string') return `must begin with ${from}`;
  if (typeof before === 'string') return `must end with .. or ${before}`;
  return before !== undefined && before.millisecond <= from.millisecond ? 'must end after it begins' : undefined;
}
