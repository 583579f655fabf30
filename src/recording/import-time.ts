const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
const afterLast = Date.UTC(2101, 0, 1);

/**
 * Reads an RFC 3339 time with `Z` or an offset, from 1970 to the end of 2100 in UTC (contract 6). Returns milliseconds since 1970,
 * finer digits cut off, or a text that says what is wrong. A leap second is refused: no entry could show it.
 */
export function importTime(text: string): number | string {
  return plainTime(text) ?? anyTime(text);
}

/**
 * The same for the form that JavaScript writes, `2026-01-31T23:59:59.000Z`, on the first 28 days of a month; undefined for any
 * other text. Most lines have it, and it takes a tenth of the time of the expression.
 */
function plainTime(text: string): number | undefined {
  if (text.length !== 24 || !separators.every(([place, code]) => text.charCodeAt(place) === code)) return undefined;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 7);
  const day = digits(text, 8, 10);
  const hour = digits(text, 11, 13);
  const minute = digits(text, 14, 16);
  const second = digits(text, 17, 19);
  const millisecond = digits(text, 20, 23);
  // A place without a digit is NaN, for which every comparison is false.
  const isPlain = year >= 1970 && year <= 2100 && month >= 1 && month <= 12 && day >= 1 && day <= 28;
  if (!isPlain || !(hour <= 23 && minute <= 59 && second <= 59 && millisecond <= 999)) return undefined;
  return Date.UTC(year, month - 1, day, hour, minute, second, millisecond);
}

/** The characters between the digits, each with its position. */
const separators: readonly (readonly [number, number])[] = [
  [4, 0x2d],
  [7, 0x2d],
  [10, 0x54],
  [13, 0x3a],
  [16, 0x3a],
  [19, 0x2e],
  [23, 0x5a],
];

/** The number that the digits from `from` to `to` write; NaN where another character stands. */
function digits(text: string, from: number, to: number): number {
  let value = 0;
  for (let place = from; place < to; place += 1) {
    const digit = text.charCodeAt(place) - 0x30;
    if (digit < 0 || digit > 9) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

function anyTime(text: string): number | string {
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
