import type { Subscription } from '@annals/client';
import { useId, useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { readEntries } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { Button } from '../components/buttons.tsx';
import { focusFirstFault, placedDetails } from '../components/forms.tsx';
import { counted } from '../components/numbers.ts';
import { PageHeader } from '../components/page.tsx';
import { FailureBox, LoadingLine, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { momentText } from '../components/times.ts';
import { tell } from '../components/toasts.ts';
import { EntryList } from '../history/entry-list.tsx';
import { QueryBar } from '../history/query-bar.tsx';
import { queryFaultOf } from '../history/query-faults.ts';
import { joined } from '../query-text/edit-query.ts';
import { navigate, path, place } from '../router/router.tsx';
import { SecretDialog, type ShownKey } from './subscription-actions.tsx';
import {
  alertsOnAll,
  draftOf,
  inputOf,
  missingParts,
  newDraft,
  partOf,
  type SubscriptionDraft,
  type SubscriptionFaults,
} from './subscription-draft.ts';
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

function Editing({ draft: first, current }: { draft: SubscriptionDraft; current: Subscription | undefined }) {
  const form = useId();
  const [draft, setDraft] = useState(first);
  const [refused, setRefused] = useState<{ readonly error: unknown; readonly draft: SubscriptionDraft }>();
  const [isBusy, setBusy] = useState(false);
  const [triedToSave, setTried] = useState(false);
  const [created, setCreated] = useState<{ readonly id: string; readonly shown: ShownKey }>();
  const missing = missingParts(draft, current);
  // A refusal is shown until the draft changes.
  const refusal = refused?.draft === draft ? placedDetails(refused.error, (field) => partOf(field, draft)) : undefined;
  const faults: SubscriptionFaults = { ...(triedToSave ? missing : {}), ...refusal?.parts };

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
      <FailureBox error={refusal?.rest} />
      <QueryCard q={draft.q} fault={faults.q} alertsOnAll={alertsOnAll(draft)} onQuery={(q) => change({ q })} />
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

interface QueryCardProps {
  readonly q: string;
  /** What the service said of the query when it refused the subscription. */
  readonly fault: string | undefined;
  /** Whether it is an alert that every change raises. */
  readonly alertsOnAll: boolean;
  readonly onQuery: (q: string) => void;
}

/** Entries that the preview shows. */
const size = 5;

/** The query of a subscription, and what it would have matched. */
function QueryCard({ q, fault, alertsOnAll: isOnAll, onQuery }: QueryCardProps) {
  // As of the last preview.
  const [preview, setPreview] = useState(() => previewOf(q));
  // The entries come with the button, since they move what is below.
  const [isOpen, setOpen] = useState(false);
  const { value, error, isLoading, isCurrent, reload } = useRequest(preview.query, (signal) =>
    readEntries({ q: preview.query, page: 1, size }, signal),
  );
  const found = queryFaultOf(error, preview.q);
  const shownFault = found ?? (fault === undefined ? undefined : { message: fault, offset: undefined });
  return (
    <section class="card">
      <h2 class="card-header">Which changes</h2>
      <LoadingLine active={isLoading} />
      <div class="card-body stack">
        <QueryBar
          q={q}
          fault={shownFault}
          action="Preview"
          onText={onQuery}
          onSubmit={(next) => {
            onQuery(next);
            setPreview(previewOf(next));
            setOpen(true);
          }}
        />
        {isOnAll ? (
          <p class="note" role="alert">
            Without a query every change of the tenant raises this alert, changes of subscriptions and settings
            included. Name the changes that it is about.
          </p>
        ) : undefined}
        <p class="muted" role="status">
          {value === undefined || !isCurrent ? (
            isOnAll ? (
              ''
            ) : (
              'Without a query every change is sent.'
            )
          ) : (
            <>
              In the last 24 hours {counted(value.totalElements, 'change')}{' '}
              {preview.q === '' ? 'occurred' : value.totalElements === 1 ? 'matches' : 'match'}
              {preview.q === q ? '.' : ' the query before. Choose Preview to look again.'}
            </>
          )}
        </p>
        {error === undefined || found !== undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
      </div>
      {!isOpen || value === undefined || value.items.length === 0 ? undefined : (
        <EntryList entries={value.items} open={undefined} />
      )}
    </section>
  );
}

function previewOf(q: string) {
  return { q, query: joined(q, `occurredAt:>="${momentText(Math.floor(Date.now() / 1_000) * 1_000 - 86_400_000)}"`) };
}
