import type { RequestLog } from '@annals/client';

// Numbers have the form of the browser's language; the words are English.
const dollarsStyle = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const;

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
export function counted(count: number, singular: string, plural = `${singular}s`): string {
  return `${countText(count)} ${count === 1 ? singular : plural}`;
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

type Cause = NonNullable<RequestLog['cause']>;

const causes: Readonly<Record<Cause, string>> = {
  quota_exhausted: 'the quota is used up',
  rate_limited: 'the provider was asked too often',
  context_length_exceeded: 'the conversation is longer than the model takes',
  content_filtered: 'the provider filtered the answer',
  authentication: 'the provider refuses the key',
  model_not_found: 'the provider does not know the model',
  unreachable: 'the server cannot be reached',
  timeout: 'the provider did not answer in time',
  bad_answer: 'the provider’s answer cannot be used',
  cancelled: 'the chat was stopped',
};

/** Why a request failed, in words. */
export function causeText(cause: Cause): string {
  return causes[cause];
}

/** A duration in the unit that fits: `850 ms`, `2.4 s`, `3 min 5 s`. */
export function durationText(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** Of texts by language that of the reader, the English one, or the first. */
export function textFor(texts: Readonly<Record<string, string>> | undefined): string | undefined {
  if (texts === undefined) return undefined;
  const { language } = navigator;
  return texts[language] ?? texts[language.split('-')[0] ?? ''] ?? texts.en ?? Object.values(texts)[0];
}
