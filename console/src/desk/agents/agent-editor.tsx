import { type Agent, ApiError, type ErrorDetail } from '@annals/client';
import { useState } from 'preact/hooks';
import { forgetAgentNames } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { Button } from '../../components/buttons.tsx';
import { PageHeader } from '../../components/page.tsx';
import { FailureBox, Skeleton } from '../../components/states.tsx';
import { tell } from '../../components/toasts.tsx';
import { Name } from '../../components/values.tsx';
import { quoted } from '../../query-text/quoted.ts';
import { navigate, path, place } from '../../router/router.tsx';
import {
  type AgentDraft,
  type AgentFaults,
  type AgentField,
  agentTitle,
  draftOf,
  emptyDraft,
  faultsOf,
  inputOf,
  partOf,
} from './agent-draft.ts';
import { AgentForm } from './agent-form.tsx';

/** Makes an agent, or edits the one that the address names. */
export function AgentEditor() {
  const isNew = path.value === 'desk/agent/new';
  const id = place.value.parameters.get('id') ?? '';
  const { value, error, reload } = useRequest(isNew ? undefined : `agent ${id}`, (signal) =>
    annals().agents.get(id, { signal }),
  );
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (isNew) return <Editing key="new" current={undefined} />;
  return value?.id === id ? <Editing key={id} current={value} /> : <Skeleton />;
}

function Editing({ current }: { readonly current: Agent | undefined }) {
  const [draft, setDraft] = useState<AgentDraft>(() => (current === undefined ? emptyDraft : draftOf(current)));
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<{ readonly error: unknown; readonly draft: AgentDraft }>();
  const [isBusy, setBusy] = useState(false);
  const [triedToSave, setTried] = useState(false);
  const faults = faultsOf(draft, current);
  const told = refused?.draft === draft ? refusedParts(refused.error) : {};
  const shown: AgentFaults = { ...shownFaults(faults, triedToSave ? undefined : touched), ...told };
  const rest = refused?.draft === draft ? errorOfRest(refused.error) : undefined;

  const change = (part: Partial<AgentDraft>) => {
    setDraft({ ...draft, ...part });
    setTouched(new Set([...touched, ...Object.keys(part)]));
  };
  const leave = (id: string) => navigate({ path: 'desk/agent', parameters: { id } });
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    setTried(true);
    if (Object.keys(faults).length > 0) {
      // Moves the focus to the first field that is wrong.
      const form = event.currentTarget;
      if (form instanceof HTMLFormElement) requestAnimationFrame(() => focusFirstFault(form));
      return;
    }
    setBusy(true);
    try {
      await saveAgent(draft, current);
      tell(`${draft.name[0]?.text ?? draft.id} is saved.`);
      leave(draft.id);
    } catch (error) {
      setRefused({ error, draft });
      setBusy(false);
    }
  };
  return (
    <form class="agent-form" noValidate onSubmit={(event) => void save(event)}>
      <PageHeader title={current === undefined ? 'New agent' : <Name text={`Edit ${agentTitle(current)}`} />}>
        <Button onClick={() => (current === undefined ? navigate({ path: 'desk/agents' }) : leave(current.id))}>
          Cancel
        </Button>
        <Button kind="primary" type="submit" disabled={isBusy}>
          Save
        </Button>
      </PageHeader>
      {rest === undefined ? undefined : <FailureBox error={rest} />}
      <AgentForm draft={draft} current={current} faults={shown} onChange={change} />
    </form>
  );
}

async function saveAgent(draft: AgentDraft, current: Agent | undefined): Promise<void> {
  if (current === undefined && (await isThere(draft.id))) {
    throw new ApiError('conflict_resource', 'There is an agent with this id already.', {
      status: 409,
      details: [{ field: 'id', message: 'There is an agent with this id already.' }],
    });
  }
  await annals().agents.put(draft.id, inputOf(draft, current));
  forgetAgentNames();
}

/** A PUT would replace the agent that has the id. A list without it is no error in the browser's log, as a 404 would be. */
async function isThere(id: string): Promise<boolean> {
  return (await annals().agents.list({ q: `id:${quoted(id)}`, pageSize: 1 })).items.length > 0;
}

function shownFaults(faults: AgentFaults, touched: ReadonlySet<string> | undefined): AgentFaults {
  if (touched === undefined) return faults;
  return Object.fromEntries(Object.entries(faults).filter(([field]) => touched.has(field)));
}

/** The service's details, each at its part of the form. */
function refusedParts(error: unknown): AgentFaults {
  const found: AgentFaults = {};
  for (const { field, message } of detailsOf(error)) {
    const part: AgentField | undefined = partOf(field);
    if (part !== undefined) found[part] ??= message;
  }
  return found;
}

/** The error, unless all of it stands at parts of the form. */
function errorOfRest(error: unknown): unknown {
  const details = detailsOf(error);
  return details.length > 0 && details.every(({ field }) => partOf(field) !== undefined) ? undefined : error;
}

function detailsOf(error: unknown): readonly ErrorDetail[] {
  return error instanceof ApiError ? error.details : [];
}

function focusFirstFault(form: HTMLFormElement): void {
  const control = form.querySelector('[aria-invalid="true"]');
  if (control instanceof HTMLElement) control.focus();
}
