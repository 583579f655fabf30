import { signal } from '@preact/signals';

/** Whether times are shown as the reader's clock has them, or as UTC. */
export type TimeZoneChoice = 'utc' | 'local';

const storageKey = 'annals.time-zone';

export const timeZone = signal<TimeZoneChoice>(readChoice());

function chooseTimeZone(choice: TimeZoneChoice): void {
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

const formats = { local: formatsOf(undefined), utc: formatsOf('UTC') };

function formatsOf(zone: string | undefined) {
  const options = { timeZone: zone, hourCycle: 'h23' } as const;
  // The Swedish form is that of ISO 8601: 2026-09-30 12:00:00.
  return {
    second: new Intl.DateTimeFormat('sv-SE', { ...options, dateStyle: 'short', timeStyle: 'medium' }),
    minute: new Intl.DateTimeFormat('sv-SE', { ...options, dateStyle: 'short', timeStyle: 'short' }),
    day: new Intl.DateTimeFormat('sv-SE', { ...options, dateStyle: 'short' }),
    clock: new Intl.DateTimeFormat('sv-SE', { ...options, timeStyle: 'medium' }),
  };
}

export type TimeDetail = 'second' | 'minute' | 'day' | 'clock';

/** A time as a text. `at` is milliseconds since 1970, or RFC 3339. Days of the service are UTC: give them `zone`. */
export function timeText(
  at: number | string,
  detail: TimeDetail = 'second',
  zone: TimeZoneChoice = timeZone.value,
): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : formats[zone][detail].format(time);
}

interface TimeProps {
  readonly at: number | string;
  readonly detail?: TimeDetail;
}

/** A time, with the exact one in both zones when one points at it. */
export function Time({ at, detail = 'second' }: TimeProps) {
  const exact = new Date(at);
  const iso = Number.isNaN(exact.getTime()) ? String(at) : exact.toISOString();
  return (
    <time class="number" dateTime={iso} title={`${iso}\n${timeText(at, 'second', 'local')} on your clock`}>
      {timeText(at, detail)}
    </time>
  );
}

/** Chooses between UTC and the reader's clock, for all times of the console. */
export function TimeZoneSwitch() {
  const choices: readonly (readonly [TimeZoneChoice, string])[] = [
    ['local', 'Local time'],
    ['utc', 'UTC'],
  ];
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">Times are shown in</legend>
      {choices.map(([choice, label]) => (
        <button
          key={choice}
          type="button"
          aria-pressed={timeZone.value === choice}
          onClick={() => chooseTimeZone(choice)}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}
