/**
 * SQL: the time of a column, set back by so many seconds. A cluster refuses an update that takes an interval from a
 * column, since that depends on the time zone.
 */
export function setBack(column: string, seconds: string): string {
  return `to_timestamp(extract(epoch from ${column} - to_timestamp(0))::double precision - ${seconds})`;
}
