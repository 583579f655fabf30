import type { Budget } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { Button } from '../../components/buttons.tsx';
import { FormField, TextField } from '../../components/forms.tsx';
import { Dialog } from '../../components/overlays.tsx';
import { FailureBox } from '../../components/states.tsx';
import { type BudgetDraft, draftOf, faultsOf, inputOf, newDraft, selectors } from './budget-draft.ts';

const words = {
  all: 'All calls of the tenant',
  client: 'Calls of a client or key',
  agent: 'Calls of an agent',
  model: 'Calls of a model',
} as const;
const hints = {
  client: 'Its id. Calls of the keys that it made count, too.',
  agent: 'Its id.',
  model: 'As the page Calls names it.',
} as const;

interface BudgetDialogProps {
  /** Left out: a new one. */
  readonly budget?: Budget | undefined;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** Makes or changes a budget. */
export function BudgetDialog({ budget, onSaved, onClose }: BudgetDialogProps) {
  const [draft, setDraft] = useState<BudgetDraft>(budget === undefined ? newDraft : draftOf(budget));
  const [isTold, setTold] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const change = (part: Partial<BudgetDraft>) => setDraft({ ...draft, ...part });
  const faults = isTold ? faultsOf(draft) : {};
  const save = async () => {
    setTold(true);
    if (Object.keys(faultsOf(draft)).length > 0) return;
    setBusy(true);
    setError(undefined);
    try {
      const input = inputOf(draft);
      const id = draft.id.trim();
      // With its version: what somebody else has changed meanwhile is not lost.
      if (budget !== undefined) await annals().budgets.put(budget.id, { ...input, metadata: budget.metadata });
      else await annals().budgets.create(id === '' ? input : { ...input, id });
      onSaved();
      onClose();
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={budget === undefined ? 'New budget' : `Budget ${budget.id}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={isBusy} onClick={() => void save()}>
            Save
          </Button>
        </>
      }
    >
      <div class="budget-form">
        {budget === undefined ? (
          <TextField
            kind="code"
            label="Id"
            hint="Left empty: a random one."
            value={draft.id}
            onText={(id) => change({ id })}
          />
        ) : undefined}
        <FormField label="What counts">
          {(control) => (
            <select
              {...control}
              value={draft.by}
              onChange={(event) => change({ by: event.currentTarget.value as BudgetDraft['by'] })}
            >
              {selectors.map((by) => (
                <option key={by} value={by}>
                  {words[by]}
                </option>
              ))}
            </select>
          )}
        </FormField>
        {draft.by === 'all' ? undefined : (
          <TextField
            kind="code"
            label={`Which ${draft.by}`}
            hint={hints[draft.by]}
            error={faults.name}
            value={draft.name}
            onText={(name) => change({ name })}
          />
        )}
        <FormField label="Period" hint="Days and months are those of UTC.">
          {(control) => (
            <select
              {...control}
              value={draft.period}
              onChange={(event) => change({ period: event.currentTarget.value as BudgetDraft['period'] })}
            >
              <option value="day">A day</option>
              <option value="month">A month</option>
              <option value="lifetime">For ever</option>
            </select>
          )}
        </FormField>
        <FormField label="Unit" hint="In US dollars, models without a price are refused.">
          {(control) => (
            <select
              {...control}
              value={draft.unit}
              onChange={(event) => change({ unit: event.currentTarget.value as BudgetDraft['unit'] })}
            >
              <option value="usd">US dollars</option>
              <option value="tokens">Tokens, in and out together</option>
            </select>
          )}
        </FormField>
        <TextField
          kind="number"
          label="Limit"
          error={faults.limit}
          value={draft.limit}
          onText={(limit) => change({ limit })}
        />
        <TextField
          kind="number"
          label="E-mails at percent"
          hint="One e-mail for each and period, to the address in the configuration key notificationEmail."
          error={faults.alerts}
          value={draft.alerts}
          onText={(alerts) => change({ alerts })}
        />
        {error === undefined ? undefined : <FailureBox error={error} />}
      </div>
    </Dialog>
  );
}
