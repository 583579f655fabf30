import type { Subscription } from '@annals/client';
import { CheckField, FormField, HeadersField, Select, SelectField, TextArea, TextField } from '../components/forms.tsx';
import { Card } from '../components/page.tsx';
import { type DurationUnit, durationUnits } from '../components/times.ts';
import {
  actorChoices,
  beginnings,
  keepsSecret,
  type SubscriptionDraft,
  type SubscriptionFaults,
} from './subscription-draft.ts';
import { type TargetField, targets, targetTypes } from './target-fields.ts';

interface SubscriptionFormProps {
  readonly draft: SubscriptionDraft;
  readonly current: Subscription | undefined;
  readonly faults: SubscriptionFaults;
  readonly onChange: (part: Partial<SubscriptionDraft>) => void;
}

/** The parts of a subscription, except its query. */
export function SubscriptionForm(props: SubscriptionFormProps) {
  const { draft, current, faults, onChange } = props;
  const { use, fields } = targets[draft.type];
  return (
    <div class="subscription-columns">
      <Card title="Where to" body="form-grid">
        <TextField
          kind="name"
          label="Name"
          error={faults.name}
          value={draft.name}
          onText={(name) => onChange({ name })}
        />
        <SelectField
          label="Kind of target"
          hint={use}
          error={faults['target.type']}
          choices={targetTypes.map((type) => [type, targets[type].name] as const)}
          value={draft.type}
          disabled={current !== undefined}
          onChoose={(type) => onChange({ type })}
        />
        {fields.map((field) => (
          <Member key={`${draft.type} ${field.name}`} field={field} {...props} />
        ))}
        {draft.type === 'email' ? undefined : (
          <p class="muted">
            If nothing is taken for 5 days, it is suspended. An e-mail says so to the address of the configuration key{' '}
            <code>notificationEmail</code>.
          </p>
        )}
      </Card>
      <Card title="What is sent" body="form-grid">
        {current === undefined ? (
          <SelectField
            label="It starts"
            hint="It cannot be changed later. A replay can send earlier changes."
            error={faults.from}
            choices={beginnings}
            value={draft.from}
            onChoose={(from) => onChange({ from })}
          />
        ) : undefined}
        <MaximumAge {...props} />
        <TextArea
          label="Hidden paths"
          hint="One a line. Their values are masked in what is sent; * stands for any characters: card.*"
          error={faults.hide}
          rows={3}
          area={{ class: 'mono', dir: 'ltr', spellcheck: false }}
          value={draft.hide}
          onText={(hide) => onChange({ hide })}
        />
        <SelectField
          label="Actor details"
          hint="What is sent of who made a change."
          error={faults.actors}
          choices={actorChoices}
          value={draft.actors}
          onChoose={(actors) => onChange({ actors })}
        />
        <CheckField checked={draft.enabled} onCheck={(enabled) => onChange({ enabled })}>
          Enabled
        </CheckField>
      </Card>
    </div>
  );
}

/** A number and a unit. */
function MaximumAge({ draft: { maxAge }, faults, onChange }: SubscriptionFormProps) {
  const label = 'Maximum age';
  return (
    <FormField
      label={label}
      hint="Changes that were older when they were recorded are skipped and counted. Empty: a day for webhooks and alerts, any age for batches."
      error={faults.maxAge}
    >
      {(control) => (
        <div class="duration">
          <input
            {...control}
            class="number"
            inputMode="numeric"
            autocomplete="off"
            value={maxAge.count}
            onInput={(event) => onChange({ maxAge: { ...maxAge, count: event.currentTarget.value } })}
          />
          <Select
            aria-label={`${label}: unit`}
            value={maxAge.unit}
            choices={(Object.keys(durationUnits) as DurationUnit[]).map((unit) => [unit, unit])}
            onChoose={(unit) => onChange({ maxAge: { ...maxAge, unit } })}
          />
        </div>
      )}
    </FormField>
  );
}

function Member({ field, draft, current, faults, onChange }: SubscriptionFormProps & { readonly field: TargetField }) {
  const { name, label, kind, hint, placeholder, choices = [] } = field;
  const shared = { label, hint, error: faults[`target.${name}`] };
  const text = draft.texts[name] ?? '';
  const setText = (next: string) => onChange({ texts: { ...draft.texts, [name]: next } });
  if (kind === 'headers') {
    return <HeadersField {...shared} headers={draft.headers} onChange={(headers) => onChange({ headers })} />;
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
      <SelectField
        {...shared}
        choices={choices}
        value={text === '' ? (choices[0]?.[0] ?? '') : text}
        disabled={current !== undefined && name === 'signing'}
        onChoose={setText}
      />
    );
  }
  const secretHint = keepsSecret(name, draft.type, current)
    ? 'One is set. It is never shown; leave this empty to keep it. It must be re-entered for another host.'
    : 'Kept encrypted, and never shown again.';
  return (
    <TextField
      {...shared}
      kind={kind === 'text' || kind === 'addresses' ? 'code' : kind}
      hint={kind === 'secret' ? secretHint : hint}
      placeholder={placeholder}
      value={text}
      onText={setText}
    />
  );
}
