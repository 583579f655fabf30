const whole = new Intl.NumberFormat('en');

const cents = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** A count with its thousands set apart: `4,944`. */
export function countText(count: number): string {
  return whole.format(count);
}

/** US dollars, as short as their size lets them be: `$12.34`, `$0.00042`. */
export function dollarsText(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars >= 0.1) return `$${cents.format(dollars)}`;
  return `$${Number(dollars.toPrecision(3))
    .toFixed(12)
    .replace(/\.?0+$/, '')}`;
}

/** `1 change`, `2 changes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** Bytes in the unit that fits: `1.4 MiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1_024 && unit < units.length - 1) {
    size /= 1_024;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
