const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
const lengthOfOwn = '1970-01-01T00:00:00.000Z'.length;
const afterLast = Date.UTC(2101, 0, 1);

/**
 * Parses an RFC 3339 time with `Z` or an offset, from 1970 to the end of 2100 in UTC (contract 6). Returns milliseconds
 * since 1970, truncated, or the fault as text. Rejects leap seconds, which entries cannot represent.
 */
export function importTime(text: string): number | string {
  const own = text.length === lengthOfOwn ? ownTime(text) : undefined;
  if (own !== undefined) return own;
  const parts = rfc3339.exec(text);
  if (parts === null) return 'is no RFC 3339 time with Z or an offset';
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const outside = 'is not from 1970 to 2100';
  // A local time of 1969 may be 1970 in UTC. Date maps years below 100 to the 20th century.
  if (year < 1969) return outside;
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return 'is a date that does not exist';
  const [fraction = '', sign, offsetHour, offsetMinute] = parts.slice(7);
  const offset = sign === undefined ? 0 : Number(`${sign}1`) * (Number(offsetHour) * 60 + Number(offsetMinute));
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0'));
  const at = date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + milliseconds;
  return at >= 0 && at < afterLast ? at : outside;
}

/** Caches the last day: most lines of a file are of the same few days. */
let knownDay = { text: '1970-01-01T', start: 0 };

/**
 * Parses the form of `toISOString`; undefined for any other text. Six times faster than Date.parse, which is four times
 * faster than the regular expression.
 */
function ownTime(text: string): number | undefined {
  if (text.startsWith(knownDay.text)) {
    const [hour, minute, second] = [digits(text, 11, 13), digits(text, 14, 16), digits(text, 17, 19)];
    const at = knownDay.start + ((hour * 60 + minute) * 60 + second) * 1000 + digits(text, 20, 23);
    const isTime = hour < 24 && minute < 60 && second < 60 && at >= 0;
    return isTime && text[13] === ':' && text[16] === ':' && text[19] === '.' && text[23] === 'Z' ? at : undefined;
  }
  const at = Date.parse(text);
  if (!(at >= 0 && at < afterLast) || new Date(at).toISOString() !== text) return undefined;
  knownDay = { text: text.slice(0, 'YYYY-MM-DDT'.length), start: at - (at % 86_400_000) };
  return at;
}

/** The number written by the digits from `start` to `end`; NaN if one is not a digit. */
function digits(text: string, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    number = digit >= 0 && digit <= 9 ? number * 10 + digit : Number.NaN;
  }
  return number;
}
