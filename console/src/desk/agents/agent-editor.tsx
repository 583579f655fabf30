// Long because it is one form, whose parts share the draft, its faults and the refusal of a save.

import { type Agent, ApiError } from '@annals/client';
import { useId, useState } from 'preact/hooks';
import { quoted } from '../../../../src/query/written.ts';
import { forgetAgentNames } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { Button } from '../../components/buttons.tsx';
import {
  CheckField,
  focusFirstFault,
  placedDetails,
  RowsField,
  SelectField,
  TextArea,
  TextField,
} from '../../components/forms.tsx';
import { Card, PageHeader } from '../../components/page.tsx';
import { FailureBox, Skeleton } from '../../components/states.tsx';
import { Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import { navigate, path, place } from '../../router/router.tsx';
import {
  type AgentDraft,
  type AgentFaults,
  agentTitle,
  type DraftText,
  draftOf,
  emptyDraft,
  faultsOf,
  inputOf,
  isSelfHosted,
  keepsKey,
  type Provider,
  partOf,
  providerNames,
} from './agent-draft.ts';

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
  const refusal = refused?.draft === draft ? placedDetails(refused.error, partOf) : undefined;
  const shown: AgentFaults = { ...shownFaults(faults, triedToSave ? undefined : touched), ...refusal?.parts };

  const change = (part: Partial<AgentDraft>) => {
    setDraft({ ...draft, ...part });
    setTouched(new Set([...touched, ...Object.keys(part)]));
  };
  const leave = (id: string) => navigate({ path: 'desk/agent', parameters: { id } });
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    setTried(true);
    if (Object.keys(faults).length > 0) {
      focusFirstFault(event.currentTarget);
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
    <form noValidate onSubmit={(event) => void save(event)}>
      <PageHeader title={current === undefined ? 'New agent' : <Name text={`Edit ${agentTitle(current)}`} />}>
        <Button onClick={() => (current === undefined ? navigate({ path: 'desk/agents' }) : leave(current.id))}>
          Cancel
        </Button>
        <Button kind="primary" type="submit" disabled={isBusy}>
          Save
        </Button>
      </PageHeader>
      <FailureBox error={refusal?.rest} />
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

/**
 * A PUT would replace the agent that has the id. A list without it is no error in the browser's log, as a 404 would be.
 */
async function isThere(id: string): Promise<boolean> {
  return (await annals().agents.list({ q: `id:${quoted(id)}`, pageSize: 1 })).items.length > 0;
}

function shownFaults(faults: AgentFaults, touched: ReadonlySet<string> | undefined): AgentFaults {
  if (touched === undefined) return faults;
  return Object.fromEntries(Object.entries(faults).filter(([field]) => touched.has(field)));
}

interface AgentFormProps {
  readonly draft: AgentDraft;
  readonly current: Agent | undefined;
  /** What is wrong with a part; only of parts that were edited already. */
  readonly faults: AgentFaults;
  readonly onChange: (part: Partial<AgentDraft>) => void;
}

/** What a field of a text takes from the draft. */
function textOf<Part extends 'id' | 'apiKey' | 'temperature' | 'maxTokens' | 'contextTokens' | 'model' | 'address'>(
  { draft, faults, onChange }: AgentFormProps,
  part: Part,
) {
  return { error: faults[part], value: draft[part], onText: (text: string) => onChange({ [part]: text }) };
}

/** The parts of an agent. */
function AgentForm(props: AgentFormProps) {
  const { draft, current, faults, onChange } = props;
  const texts = (part: 'name' | 'description') => ({
    texts: draft[part],
    error: faults[part],
    onChange: (changed: readonly DraftText[]) => onChange({ [part]: changed }),
  });
  return (
    <div class="desk-columns">
      <Card title="What it does" body="form-grid">
        {current === undefined ? (
          <TextField
            key="id"
            kind="code"
            label="Id"
            hint="Your application names the agent by this id. It cannot be changed later."
            {...textOf(props, 'id')}
          />
        ) : undefined}
        <TextsField label="Name" {...texts('name')} />
        <TextsField label="Description" {...texts('description')} />
        <TextArea
          key="instructions"
          label="Instructions"
          hint="Given to the model before each chat."
          error={faults.userPrompt}
          rows={9}
          value={draft.userPrompt}
          onText={(userPrompt) => onChange({ userPrompt })}
        />
        <CheckField checked={draft.readsHistory} onCheck={(readsHistory) => onChange({ readsHistory })}>
          Can search the change history, with the rights of the client that chats
        </CheckField>
        {draft.readsHistory && current?.mcpServers !== undefined ? (
          <CheckField
            checked={draft.allowsHistoryWithTools}
            onCheck={(allowsHistoryWithTools) => onChange({ allowsHistoryWithTools })}
          >
            What it finds there may go to the servers of its tools
          </CheckField>
        ) : undefined}
        <CheckField checked={draft.enabled} onCheck={(enabled) => onChange({ enabled })}>
          Enabled
        </CheckField>
      </Card>
      <Card title="Its model" body="form-grid">
        <ModelParts {...props} />
      </Card>
    </div>
  );
}

interface TextsFieldProps {
  readonly label: string;
  readonly texts: readonly DraftText[];
  readonly onChange: (texts: readonly DraftText[]) => void;
  readonly error: string | undefined;
}

/** A text in any number of languages. */
function TextsField({ label, texts, onChange, error }: TextsFieldProps) {
  return (
    <RowsField
      class="texts-field"
      label={label}
      error={error}
      rows={texts}
      empty={{ language: texts.length === 0 ? 'en' : '', text: '' }}
      add="Add a language"
      removeLabel={({ language }) => `Remove the ${label.toLowerCase()} in ${language}`}
      onChange={onChange}
    >
      {({ language, text }, change, control, number) => (
        <>
          <input
            {...control}
            aria-label={`${label}: language ${number}`}
            class="mono"
            value={language}
            onInput={(event) => change({ language: event.currentTarget.value.trim() })}
          />
          <input
            {...control}
            aria-label={`${label} in ${language === '' ? 'this language' : language}`}
            dir="auto"
            value={text}
            onInput={(event) => change({ text: event.currentTarget.value })}
          />
        </>
      )}
    </RowsField>
  );
}

function ModelParts(props: AgentFormProps) {
  const { draft, current, onChange } = props;
  const suggestions = useId();
  const models = useRequest('models', (signal) => annals().models.list({ signal }));
  const known = models.value?.find(({ provider }) => provider === draft.provider)?.models ?? [];
  const isShared = draft.provider === 'shared';
  return (
    <>
      <SelectField
        key="provider"
        label="Provider"
        hint={isShared ? 'The service chooses the model. Tokens count against the quota.' : undefined}
        choices={Object.entries(providerNames) as [Provider, string][]}
        value={draft.provider}
        onChoose={(provider) => onChange({ provider })}
      />
      {isShared && draft.model === '' ? undefined : (
        <>
          <TextField
            key="model"
            kind="code"
            label="Model"
            hint="The name that its provider uses, such as gpt-5.4-mini."
            input={{ list: suggestions }}
            {...textOf(props, 'model')}
            onText={(model) => onChange({ model: model.trim() })}
          />
          <datalist id={suggestions}>
            {known.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </datalist>
        </>
      )}
      {isSelfHosted(draft.provider) ? (
        <TextField
          key="address"
          kind="url"
          label="Address"
          hint="Private addresses need the operator's permission."
          placeholder="https://models.example.com/v1"
          {...textOf(props, 'address')}
          onText={(address) => onChange({ address: address.trim() })}
        />
      ) : undefined}
      {isShared ? undefined : (
        <TextField
          key="key"
          kind="secret"
          label="Key"
          hint={
            keepsKey(draft, current)
              ? 'A key is set. It is never shown; leave this empty to keep it.'
              : 'Kept encrypted, and never shown again.'
          }
          {...textOf(props, 'apiKey')}
        />
      )}
      <TextField
        key="temperature"
        kind="number"
        label="Temperature"
        hint="From 0 to 2. Empty means the model's own default."
        {...textOf(props, 'temperature')}
      />
      <TextField
        key="longest"
        kind="number"
        label="Longest answer"
        hint="In tokens. Empty means the limit of the service."
        {...textOf(props, 'maxTokens')}
      />
      <TextField
        key="context"
        kind="number"
        label="Context"
        hint="How many tokens the model takes, its answer included."
        {...textOf(props, 'contextTokens')}
      />
    </>
  );
}
