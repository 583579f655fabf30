import type { ExactConfiguration } from '@annals/client';
import { stringifyJson } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { CheckField, TextField } from '../../components/forms.tsx';
import { Dialog } from '../../components/overlays.tsx';
import { tell } from '../../components/toasts.ts';
import { mask, readEdited } from '../json-editor/document-text.ts';
import { JsonEditor } from '../json-editor/json-editor.tsx';

interface ConfigurationDialogProps {
  /** Undefined for a new setting. */
  readonly current: ExactConfiguration | undefined;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** The service always secures these. */
const alwaysSecured = [
  'providerApiToken',
  'openAiApiToken',
  'anthropicApiToken',
  'googleApiToken',
  'selfHostedProvider',
];

/** Creates a setting, or changes one. A secret is re-entered, or stays as it is. */
export function ConfigurationDialog({ current, onClose, onSaved }: ConfigurationDialogProps) {
  const [key, setKey] = useState(current?.key ?? '');
  const [description, setDescription] = useState(current?.description ?? '');
  const [wantsSecured, setSecured] = useState(current?.secured ?? false);
  const [text, setText] = useState(
    current === undefined ? '""' : current.secured ? '' : stringifyJson(current.value, 2),
  );
  const [secret, setSecret] = useState('');

  const isAlways = alwaysSecured.includes(key);
  const isSecured = isAlways || wantsSecured;
  const edited = readEdited(text);
  const keepsSecret = current?.secured === true && secret === '';
  const keyFault = faultOfKey(key);
  const isReady = keyFault === undefined && (isSecured ? keepsSecret || secret !== '' : edited.fault === undefined);

  const run = async () => {
    const described = description === '' ? {} : { description };
    const item = isSecured
      ? { value: keepsSecret ? mask : secret, secured: true as const, ...described }
      : { value: edited.value ?? null, secured: false as const, ...described };
    if (current === undefined) await annals().exact.configurations.create([{ key, ...item }]);
    else await annals().exact.configurations.replace(key, { ...item, version: current.version });
    tell(`${key} is saved.`);
    onSaved();
  };
  return (
    <Dialog
      title={current === undefined ? 'New setting' : `Edit ${current.key}`}
      onClose={onClose}
      actions={[{ label: 'Save', isReady, run }]}
    >
      {current === undefined ? (
        <TextField
          key="key"
          kind="code"
          label="Key"
          error={key === '' ? undefined : keyFault}
          value={key}
          onText={setKey}
        />
      ) : undefined}
      <CheckField checked={isSecured} disabled={isAlways} onCheck={setSecured}>
        Secured: kept encrypted, and never shown again
      </CheckField>
      {isSecured ? (
        <TextField
          key="secret"
          kind="secret"
          label="Secret"
          hint={current?.secured === true ? 'Leave this empty to keep the one that is stored.' : undefined}
          value={secret}
          onText={setSecret}
        />
      ) : (
        <JsonEditor
          key="value"
          label="Value"
          hint="Any JSON value. Put a text in quotes."
          text={text}
          fault={edited.fault}
          rows={Math.min(14, text.split('\n').length + 2)}
          onText={setText}
        />
      )}
      <TextField
        key="description"
        kind="name"
        label="Description"
        input={{ maxLength: 4_096 }}
        value={description}
        onText={setDescription}
      />
    </Dialog>
  );
}

function faultOfKey(key: string): string | undefined {
  if (/^[^\p{Cc},\p{Cs}]{1,256}$/u.test(key)) return undefined;
  return 'Up to 256 characters, without commas and control characters.';
}
