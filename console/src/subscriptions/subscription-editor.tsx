import type { Subscription } from '@annals/client';
import { useId, useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { Button } from '../components/button.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import { Skeleton } from '../components/loading.tsx';
import { Name } from '../components/name.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { tell } from '../components/toasts.tsx';
import { navigate, path, place } from '../router/location.ts';
import { QueryCard } from './query-card.tsx';
import { SecretDialog, type ShownKey } from './secret-dialog.tsx';
import { draftOf, inputOf, newDraft, type SubscriptionDraft } from './subscription-draft.ts';
import { errorOfRest, missingParts, refusedParts } from './subscription-faults.ts';
import { SubscriptionForm } from './subscription-form.tsx';

/** Makes a subscription, of the query that the address may name, or edits the one that it names. */
export function SubscriptionEditor() {
  const isNew = path.value === 'subscriptions/new';
  const { parameters } = place.value;
  const id = parameters.get('id') ?? '';
  const { value, error, reload } = useRequest(isNew ? undefined : `subscription ${id}`, (signal) =>
    annals().subscriptions.get(id, { signal }),
  );
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (isNew) return <Editing key="new" draft={newDraft(parameters.get('q') ?? '')} current={undefined} />;
  return value?.id === id ? <Editing key={id} draft={draftOf(value)} current={value} /> : <Skeleton />;
}

interface EditingProps {
  readonly draft: SubscriptionDraft;
  readonly current: Subscription | undefined;
}

function Editing({ draft: first, current }: EditingProps) {
  const form = useId();
  const [draft, setDraft] = useState(first);
  const [refused, setRefused] = useState<{ readonly error: unknown; readonly draft: SubscriptionDraft }>();
  const [isBusy, setBusy] = useState(false);
  const [triedToSave, setTried] = useState(false);
  const [created, setCreated] = useState<{ readonly id: string; readonly shown: ShownKey }>();
  const missing = missingParts(draft, current);
  // What was refused is told until it is written anew.
  const told = refused?.draft === draft ? refusedParts(refused.error, draft) : {};
  const rest = refused?.draft === draft ? errorOfRest(refused.error, draft) : undefined;
  const faults = { ...(triedToSave ? missing : {}), ...told };

  const change = (part: Partial<SubscriptionDraft>) => setDraft((before) => ({ ...before, ...part }));
  const leave = (id: string) => navigate({ path: 'subscriptions/one', parameters: { id } });
  const save = async (element: HTMLFormElement) => {
    setTried(true);
    if (Object.keys(missing).length > 0) {
      focusFirstFault(element);
      return;
    }
    setBusy(true);
    try {
      const input = inputOf(draft, current);
      if (current !== undefined) {
        await annals().subscriptions.replace(current.id, input);
        tell(`${input.name} is saved.`);
        leave(current.id);
        return;
      }
      const { id, ...shown } = await annals().subscriptions.create(input);
      tell(`${input.name} is saved.`);
      if (shown.secret === undefined && shown.publicKey === undefined) leave(id);
      else setCreated({ id, shown });
    } catch (error) {
      setRefused({ error, draft });
      setBusy(false);
      focusFirstFault(element);
    }
  };
  return (
    <div class="stack">
      <PageHeader title={current === undefined ? 'New subscription' : <Name text={`Edit ${current.name}`} />}>
        <Button onClick={() => (current === undefined ? navigate({ path: 'subscriptions' }) : leave(current.id))}>
          Cancel
        </Button>
        <Button kind="primary" type="submit" form={form} disabled={isBusy}>
          Save
        </Button>
      </PageHeader>
      {rest === undefined ? undefined : <FailureBox error={rest} />}
      <QueryCard q={draft.q} fault={faults.q} onQuery={(q) => change({ q })} />
      <form
        id={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save(event.currentTarget);
        }}
      >
        <SubscriptionForm draft={draft} current={current} faults={faults} onChange={change} />
      </form>
      {created === undefined ? undefined : <SecretDialog shown={created.shown} onClose={() => leave(created.id)} />}
    </div>
  );
}

/** After the faults are drawn. */
function focusFirstFault(form: HTMLFormElement): void {
  requestAnimationFrame(() => {
    const control = form.querySelector('[aria-invalid="true"]');
    if (control instanceof HTMLElement) control.focus();
  });
}
