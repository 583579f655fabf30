import { useState } from 'preact/hooks';
import { TextField } from '../components/forms.tsx';
import { Dialog } from '../components/overlays.tsx';
import { momentOf, momentText, startOfDay, type TimeBounds, zoneName } from '../components/times.ts';

/** Days as `2026-11-22`, and times as `14:30`. Without a time the whole day is meant. */
interface Chosen {
  readonly first: string;
  readonly firstTime: string;
  readonly last: string;
  readonly lastTime: string;
}

/** Asks for days, both included, or for times. The month before this one is proposed: it is what auditors ask for. */
export function DaysDialog({ onClose, onChoose }: { onClose: () => void; onChoose: (bounds: TimeBounds) => void }) {
  const [chosen, setChosen] = useState(lastMonth);
  const range = rangeOf(chosen);
  const isOrdered = range.from < range.before;
  const fields: readonly (readonly [keyof Chosen, string, 'date' | 'time'])[] = [
    ['first', 'First day', 'date'],
    ['firstTime', 'From', 'time'],
    ['last', 'Last day', 'date'],
    ['lastTime', 'Until', 'time'],
  ];
  const run = () => onChoose({ from: momentText(range.from), before: momentText(range.before) });
  return (
    <Dialog title="Days and times" onClose={onClose} actions={[{ label: 'Show', isReady: isOrdered, run }]}>
      <div class="days-fields">
        {fields.map(([name, label, type]) => (
          <TextField
            key={name}
            label={label}
            error={name === 'last' && range.from >= range.before ? 'The end is before the beginning.' : undefined}
            input={{ type }}
            value={chosen[name]}
            onText={(text) => setChosen({ ...chosen, [name]: text })}
          />
        ))}
      </div>
      <p class="muted">Without a time the whole day is meant. Days and times are those of {zoneName()}.</p>
    </Dialog>
  );
}

function lastMonth(): Chosen {
  const [year = 0, month = 0] = momentText(Date.now()).split('-').map(Number);
  const dateOf = (time: number) => new Date(time).toISOString().slice(0, 10);
  return {
    first: dateOf(Date.UTC(year, month - 2, 1)),
    firstTime: '',
    last: dateOf(Date.UTC(year, month - 1, 0)),
    lastTime: '',
  };
}

/** Milliseconds since 1970; NaN where a day is missing. */
function rangeOf({ first, firstTime, last, lastTime }: Chosen): { readonly from: number; readonly before: number } {
  const end = momentOf(last, lastTime);
  return {
    from: momentOf(first, firstTime),
    before: lastTime === '' && !Number.isNaN(end) ? startOfDay(end, 1) : end,
  };
}
