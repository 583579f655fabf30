import { chooseTimeZone, type TimeDetail, type TimeZoneChoice, timeText, timeZone } from './time-text.ts';

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
