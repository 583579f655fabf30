import { useState } from 'preact/hooks';
import { later } from '../components/later.tsx';
import { hasTime, withTime } from '../query-text/edit-query.ts';
import { timeChoices } from './time-choices.ts';

const DaysDialog = later(async () => (await import('./days-dialog.tsx')).DaysDialog);

interface TimePresetsProps {
  readonly q: string;
  readonly onQuery: (q: string) => void;
}

/** Ranges of time at a click. Each writes a term of the query. */
export function TimePresets({ q, onQuery }: TimePresetsProps) {
  const [isChoosing, setChoosing] = useState(false);
  const now = Date.now();
  return (
    <>
      <fieldset class="segments">
        <legend class="visually-hidden">Time</legend>
        {timeChoices.map(({ label, words, bounds }) => (
          <button
            key={label}
            type="button"
            title={capital(words)}
            aria-pressed={hasTime(q, bounds(now))}
            onClick={() => onQuery(withTime(q, bounds(Date.now())))}
          >
            {label}
          </button>
        ))}
        <button
          type="button"
          title="From a day or time to another"
          aria-haspopup="dialog"
          onClick={() => setChoosing(true)}
        >
          Days…
        </button>
      </fieldset>
      {isChoosing ? (
        <DaysDialog
          onClose={() => setChoosing(false)}
          onChoose={(bounds) => {
            setChoosing(false);
            onQuery(withTime(q, bounds));
          }}
        />
      ) : undefined}
    </>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
