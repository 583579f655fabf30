import type { Subscription } from '@annals/client';
import { DurationField } from '../components/duration-field.tsx';
import { CheckField, FormField, TextField } from '../components/forms.tsx';
import { HeadersField } from './headers-field.tsx';
import { keepsSecret, type SubscriptionDraft, type SubscriptionFaults } from './subscription-draft.ts';
import { type TargetField, type TargetType, targets, targetTypes } from './target-fields.ts';

interface SubscriptionFormProps {
  readonly draft: SubscriptionDraft;
  readonly current: Subscription | undefined;
  readonly faults: SubscriptionFaults;
  readonly onChange: (part: Partial<SubscriptionDraft>) => void;
}

/** The parts of a subscription besides its query. */
export function SubscriptionForm(props: SubscriptionFormProps) {
  const { draft, current, faults, onChange } = props;
  const { use, fields } = targets[draft.type];
  return (
    <div class="subscription-columns">
      <section class="card">
        <h2 class="card-header">Where to</h2>
        <div class="card-body form-grid">
          <TextField
            key="name"
            kind="name"
            label="Name"
            error={faults.name}
            value={draft.name}
            onText={(name) => onChange({ name })}
          />
          <FormField key="type" label="Kind of target" hint={use} error={faults['target.type']}>
            {(control) => (
              <select
                {...control}
                value={draft.type}
                disabled={current !== undefined}
                onChange={(event) => onChange({ type: event.currentTarget.value as TargetType })}
              >
                {targetTypes.map((type) => (
                  <option key={type} value={type}>
                    {targets[type].name}
                  </option>
                ))}
              </select>
            )}
          </FormField>
          {fields.map((field) => (
            <Member key={`${draft.type} ${field.name}`} field={field} {...props} />
          ))}
          {draft.type === 'email' ? undefined : (
            <p class="muted">
              If nothing is taken for 5 days, it is suspended. An e-mail says so to the address of the configuration key{' '}
              <code>notificationEmail</code>.
            </p>
          )}
        </div>
      </section>
      <section class="card">
        <h2 class="card-header">What is sent</h2>
        <div class="card-body form-grid">
          {current === undefined ? (
            <FormField
              key="from"
              label="It begins"
              hint="It cannot be changed later. A replay can send what lies before."
              error={faults.from}
            >
              {(control) => (
                <select
                  {...control}
                  value={draft.from}
                  onChange={(event) => onChange({ from: event.currentTarget.value })}
                >
                  <option value="now">with what is recorded from now on</option>
                  <option value="start">with the oldest change that is kept</option>
                </select>
              )}
            </FormField>
          ) : undefined}
          <DurationField
            key="age"
            label="Greatest age"
            hint="What was older when it was recorded is skipped and counted. Empty: a day for webhooks and alerts, any age for batches."
            error={faults.maxAge}
            value={draft.maxAge}
            onDuration={(maxAge) => onChange({ maxAge })}
          />
          <FormField
            key="hide"
            label="Hidden paths"
            hint="One a line. Their values are masked in what is sent; * stands for any characters: card.*"
            error={faults.hide}
          >
            {(control) => (
              <textarea
                {...control}
                class="mono"
                rows={3}
                spellcheck={false}
                value={draft.hide}
                onInput={(event) => onChange({ hide: event.currentTarget.value })}
              />
            )}
          </FormField>
          <CheckField checked={draft.enabled} onCheck={(enabled) => onChange({ enabled })}>
            Enabled
          </CheckField>
        </div>
      </section>
    </div>
  );
}

function Member({ field, draft, current, faults, onChange }: SubscriptionFormProps & { readonly field: TargetField }) {
  const { name, label, kind, hint, placeholder, choices = [] } = field;
  const error = faults[`target.${name}`];
  const text = draft.texts[name] ?? '';
  const setText = (next: string) => onChange({ texts: { ...draft.texts, [name]: next } });
  if (kind === 'headers') {
    return (
      <HeadersField
        label={label}
        hint={hint}
        error={error}
        headers={draft.headers}
        onChange={(headers) => onChange({ headers })}
      />
    );
  }
  if (kind === 'check') {
    return (
      <CheckField
        checked={draft.checks[name] ?? false}
        onCheck={(checked) => onChange({ checks: { ...draft.checks, [name]: checked } })}
      >
        {label}
      </CheckField>
    );
  }
  if (kind === 'choice') {
    return (
      <FormField label={label} hint={hint} error={error}>
        {(control) => (
          <select
            {...control}
            value={text === '' ? choices[0]?.[0] : text}
            disabled={current !== undefined && name === 'signing'}
            onChange={(event) => setText(event.currentTarget.value)}
          >
            {choices.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        )}
      </FormField>
    );
  }
  const secretHint = keepsSecret(name, draft.type, current)
    ? 'One is set. It is never shown; leave this empty to keep it. Another host needs it anew.'
    : 'Kept encrypted, and never shown again.';
  return (
    <TextField
      kind={kind === 'text' ? 'code' : kind}
      label={label}
      hint={kind === 'secret' ? secretHint : hint}
      error={error}
      placeholder={placeholder}
      value={text}
      onText={setText}
    />
  );
}
