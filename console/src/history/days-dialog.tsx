import { useId, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { FormField } from '../components/form-field.tsx';

const dayLength = 86_400_000;

interface DaysDialogProps {
  readonly onClose: () => void;
  /** Bounds of the chosen days, as RFC 3339 has them: the first moment, and the one behind the last. */
  readonly onChoose: (from: string, before: string) => void;
}

/** Asks for days, both included. The month before this one is proposed: it is what auditors ask for. */
export function DaysDialog({ onClose, onChoose }: DaysDialogProps) {
  const form = useId();
  const [[first, last], setDays] = useState(lastMonth);
  const isOrdered = first !== '' && last !== '' && first <= last;
  return (
    <Dialog
      title="Days"
      onClose={onClose}
      actions={
        <Button kind="primary" type="submit" form={form} disabled={!isOrdered}>
          Show
        </Button>
      }
    >
      <form
        id={form}
        class="form-grid"
        onSubmit={(event) => {
          event.preventDefault();
          if (isOrdered) onChoose(startOf(first), startOf(dateOf(Date.parse(last) + dayLength)));
        }}
      >
        <FormField label="First day" hint="Days are UTC.">
          {(control) => (
            <input
              {...control}
              type="date"
              value={first}
              onInput={(event) => setDays([event.currentTarget.value, last])}
            />
          )}
        </FormField>
        <FormField
          label="Last day"
          error={first === '' || last === '' || isOrdered ? undefined : 'The last day is before the first.'}
        >
          {(control) => (
            <input
              {...control}
              type="date"
              value={last}
              onInput={(event) => setDays([first, event.currentTarget.value])}
            />
          )}
        </FormField>
      </form>
    </Dialog>
  );
}

function lastMonth(): [first: string, last: string] {
  const now = new Date();
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return [dateOf(Date.UTC(year, month - 1, 1)), dateOf(Date.UTC(year, month, 0))];
}

/** @example dateOf(0); // '1970-01-01' */
function dateOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 10);
}

function startOf(date: string): string {
  return `${date}T00:00:00Z`;
}
