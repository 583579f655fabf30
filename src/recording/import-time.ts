const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
const lengthOfOwn = '1970-01-01T00:00:00.000Z'.length;
const afterLast = Date.UTC(2101, 0, 1);

/**
 * Reads an RFC 3339 time with `Z` or an offset, from 1970 to the end of 2100 in UTC (contract 6). Returns milliseconds since 1970,
 * finer digits cut off, or a text that says what is wrong. A leap second is refused: no entry could show it.
 */
export function importTime(text: string): number | string {
  // What the runtime writes it also reads, in a quarter of the time.
  const own = text.length === lengthOfOwn ? Date.parse(text) : Number.NaN;
  if (own >= 0 && own < afterLast && new Date(own).toISOString() === text) return own;
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
  // A time of 1969 may be 1970 in UTC. The runtime reads years before 100 as other years.
  if (year < 1969) return outside;
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return 'is a date that does not exist';
  const [fraction = '', sign, offsetHour, offsetMinute] = parts.slice(7);
  const offset = sign === undefined ? 0 : Number(`${sign}1`) * (Number(offsetHour) * 60 + Number(offsetMinute));
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0'));
  const at = date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + milliseconds;
  return at >= 0 && at < afterLast ? at : outside;
}
