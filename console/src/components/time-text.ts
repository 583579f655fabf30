import { signal } from '@preact/signals';

/** Whether times are shown as the reader's clock has them, or as UTC. */
export type TimeZoneChoice = 'utc' | 'local';

const storageKey = 'annals.time-zone';

export const timeZone = signal<TimeZoneChoice>(readChoice());

export function chooseTimeZone(choice: TimeZoneChoice): void {
  timeZone.value = choice;
  try {
    localStorage.setItem(storageKey, choice);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

function readChoice(): TimeZoneChoice {
  try {
    return localStorage.getItem(storageKey) === 'utc' ? 'utc' : 'local';
  } catch {
    return 'local';
  }
}

/** The IANA name of the zone that the reader has chosen: `Europe/Berlin`. */
export function zoneName(): string {
  if (timeZone.value === 'utc') return 'UTC';
  const { timeZone: name } = new Intl.DateTimeFormat().resolvedOptions();
  // A browser that does not know its zone has a clock that shows UTC.
  return name === undefined || name === 'Etc/Unknown' ? 'UTC' : name;
}

const formats = { local: formatsOf(undefined), utc: formatsOf('UTC') };

function formatsOf(zone: string | undefined) {
  // Times have the form of the browser's language; the words are English. Two digits, so that columns line up.
  const day = { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' } as const;
  const minute = { hour: '2-digit', minute: '2-digit' } as const;
  const second = { ...minute, second: '2-digit' } as const;
  return {
    second: new Intl.DateTimeFormat(undefined, { ...day, ...second }),
    minute: new Intl.DateTimeFormat(undefined, { ...day, ...minute }),
    day: new Intl.DateTimeFormat(undefined, day),
    weekday: new Intl.DateTimeFormat(undefined, { timeZone: zone, dateStyle: 'full' }),
    clock: new Intl.DateTimeFormat(undefined, { timeZone: zone, ...second }),
  };
}

export type TimeDetail = 'second' | 'minute' | 'day' | 'weekday' | 'clock';

/** A time as a text. `at` is milliseconds since 1970, or RFC 3339. Days of usage are UTC: give them `zone`. */
export function timeText(
  at: number | string,
  detail: TimeDetail = 'second',
  zone: TimeZoneChoice = timeZone.value,
): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : formats[zone][detail].format(time);
}
