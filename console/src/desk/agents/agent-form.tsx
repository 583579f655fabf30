import type { Agent } from '@annals/client';
import { useId } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { CheckField, FormField, TextField } from '../../components/forms.tsx';
import {
  type AgentDraft,
  type AgentFaults,
  isSelfHosted,
  keepsKey,
  type Provider,
  providerNames,
} from './agent-draft.ts';
import { TextsField } from './texts-field.tsx';

interface AgentFormProps {
  readonly draft: AgentDraft;
  readonly current: Agent | undefined;
  /** What is wrong with a part; only of parts that were written already. */
  readonly faults: AgentFaults;
  readonly onChange: (part: Partial<AgentDraft>) => void;
}

/** The parts of an agent. */
export function AgentForm(props: AgentFormProps) {
  const { draft, current, faults, onChange } = props;
  return (
    <div class="desk-columns">
      <section class="card">
        <h2 class="card-header">What it does</h2>
        <div class="card-body form-grid">
          {current === undefined ? (
            <TextField
              key="id"
              kind="code"
              label="Id"
              hint="Your application names the agent by this id. It cannot be changed later."
              error={faults.id}
              value={draft.id}
              onText={(id) => onChange({ id })}
            />
          ) : undefined}
          <TextsField label="Name" texts={draft.name} error={faults.name} onChange={(name) => onChange({ name })} />
          <TextsField
            label="Description"
            texts={draft.description}
            error={faults.description}
            onChange={(description) => onChange({ description })}
          />
          <FormField
            key="instructions"
            label="Instructions"
            hint="What the model is told before each chat."
            error={faults.userPrompt}
          >
            {(control) => (
              <textarea
                {...control}
                rows={9}
                dir="auto"
                value={draft.userPrompt}
                onInput={(event) => onChange({ userPrompt: event.currentTarget.value })}
              />
            )}
          </FormField>
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
        </div>
      </section>
      <section class="card">
        <h2 class="card-header">Its model</h2>
        <div class="card-body form-grid">
          <ModelParts {...props} />
        </div>
      </section>
    </div>
  );
}

function ModelParts({ draft, current, faults, onChange }: AgentFormProps) {
  const suggestions = useId();
  const models = useRequest('models', (signal) => annals().models.list({ signal }));
  const known = models.value?.find(({ provider }) => provider === draft.provider)?.models ?? [];
  const isShared = draft.provider === 'shared';
  return (
    <>
      <FormField
        key="provider"
        label="Provider"
        hint={isShared ? 'The service chooses the model. Tokens count against the quota.' : undefined}
      >
        {(control) => (
          <select
            {...control}
            value={draft.provider}
            onChange={(event) => onChange({ provider: event.currentTarget.value as Provider })}
          >
            {Object.entries(providerNames).map(([provider, name]) => (
              <option key={provider} value={provider}>
                {name}
              </option>
            ))}
          </select>
        )}
      </FormField>
      {isShared && draft.model === '' ? undefined : (
        <FormField
          key="model"
          label="Model"
          hint="The name that its provider uses, such as gpt-5.4-mini."
          error={faults.model}
        >
          {(control) => (
            <>
              <input
                {...control}
                class="mono"
                list={suggestions}
                spellcheck={false}
                autocomplete="off"
                value={draft.model}
                onInput={(event) => onChange({ model: event.currentTarget.value.trim() })}
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
        </FormField>
      )}
      {isSelfHosted(draft.provider) ? (
        <TextField
          key="address"
          kind="url"
          label="Address"
          hint="Private addresses need the operator's permission."
          error={faults.address}
          placeholder="https://models.example.com/v1"
          value={draft.address}
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
          error={faults.apiKey}
          value={draft.apiKey}
          onText={(apiKey) => onChange({ apiKey })}
        />
      )}
      <TextField
        key="temperature"
        kind="number"
        label="Temperature"
        hint="From 0 to 2. Empty means the model's own default."
        error={faults.temperature}
        value={draft.temperature}
        onText={(temperature) => onChange({ temperature })}
      />
      <TextField
        key="longest"
        kind="number"
        label="Longest answer"
        hint="In tokens. Empty means the limit of the service."
        error={faults.maxTokens}
        value={draft.maxTokens}
        onText={(maxTokens) => onChange({ maxTokens })}
      />
      <TextField
        key="context"
        kind="number"
        label="Context"
        hint="How many tokens the model takes, its answer included."
        error={faults.contextTokens}
        value={draft.contextTokens}
        onText={(contextTokens) => onChange({ contextTokens })}
      />
    </>
  );
}
