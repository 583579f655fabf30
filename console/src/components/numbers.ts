// Numbers have the form of the browser's language; the words are English.
const dollarsStyle = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const;

export type NumberTexts = ReturnType<typeof numberTexts>;

/** How a language writes numbers; undefined: that of the browser. */
export function numberTexts(locale?: string) {
  const whole = new Intl.NumberFormat(locale);
  const tenths = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const cents = new Intl.NumberFormat(locale, dollarsStyle);
  const parts = new Intl.NumberFormat(locale, {
    ...dollarsStyle,
    minimumFractionDigits: 0,
    maximumSignificantDigits: 3,
  });
  return {
    /** A count with its thousands set apart: `4,944`. */
    count: (count: number) => whole.format(count),
    tenths: (number: number) => tenths.format(number),
    /** US dollars, as short as their size lets them be: `$12.34`, `$0.00042`. */
    dollars: (dollars: number) => (dollars >= 0.1 ? cents : parts).format(dollars),
  };
}

export const { count: countText, tenths: tenthsText, dollars: dollarsText } = numberTexts();

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
  return `${unit === 0 || size >= 100 ? countText(Math.round(size)) : tenthsText(size)} ${units[unit]}`;
}
