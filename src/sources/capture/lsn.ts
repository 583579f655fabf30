/** A position in the write-ahead log, as PostgreSQL prints it: two hexadecimal numbers, for example `0/16B3748`. */
export type Lsn = bigint;

const pattern = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i;

/** Throws for a text that is no LSN. */
export function parseLsn(text: string): Lsn {
  const [, high, low] = pattern.exec(text) ?? [];
  if (high === undefined || low === undefined) throw new Error(`PostgreSQL sent ${JSON.stringify(text)} as an LSN`);
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffff_ffffn).toString(16).toUpperCase()}`;
}
