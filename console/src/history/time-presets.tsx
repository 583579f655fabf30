import { useState } from 'preact/hooks';
import { topTerms, withTime } from '../query-text/edit-query.ts';
import { DaysDialog } from './days-dialog.tsx';

interface TimePresetsProps {
  readonly q: string;
  readonly onQuery: (q: string) => void;
}

const dayLength = 86_400_000;

/** The time that everything was recorded after. */
export const allTime = '1970-01-01T00:00:00Z';

const presets: readonly {
  readonly label: string;
  readonly title: string;
  readonly days: number | 'default' | 'all';
}[] = [
  { label: '24 h', title: 'The last 24 hours', days: 1 },
  { label: '7 d', title: 'The last 7 days', days: 7 },
  { label: '30 d', title: 'The last 30 days, which a query without a from-bound covers', days: 'default' },
  { label: '90 d', title: 'The last 90 days', days: 90 },
  { label: '1 y', title: 'The last year', days: 365 },
  { label: 'All', title: 'All time', days: 'all' },
];

/** Ranges of time at a click. Each writes a term of the query. */
export function TimePresets({ q, onQuery }: TimePresetsProps) {
  const [isChoosing, setChoosing] = useState(false);
  const isDefault = !topTerms(q).some(({ field }) => field === 'occurredAt');
  const isAll = q.includes(allTime);
  const choose = (days: number | 'default' | 'all') => {
    if (days === 'default') onQuery(withTime(q, {}));
    else
      onQuery(
        withTime(q, {
          from: days === 'all' ? allTime : `${new Date(Date.now() - days * dayLength).toISOString().slice(0, 19)}Z`,
        }),
      );
  };
  return (
    <>
      <fieldset class="segments">
        <legend class="visually-hidden">Time</legend>
        {presets.map(({ label, title, days }) => (
          <button
            key={label}
            type="button"
            title={title}
            aria-pressed={(days === 'default' && isDefault) || (days === 'all' && isAll)}
            onClick={() => choose(days)}
          >
            {label}
          </button>
        ))}
        <button type="button" title="From a day to a day" aria-haspopup="dialog" onClick={() => setChoosing(true)}>
          Days…
        </button>
      </fieldset>
      {isChoosing ? (
        <DaysDialog
          onClose={() => setChoosing(false)}
          onChoose={(from, before) => {
            setChoosing(false);
            onQuery(withTime(q, { from, before }));
          }}
        />
      ) : undefined}
    </>
  );
}
