import type { Agent } from '@annals/client';
import { useId, useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { Button } from '../../components/buttons.tsx';
import { TextField } from '../../components/forms.tsx';
import { Dialog } from '../../components/overlays.tsx';
import { FailureBox } from '../../components/states.tsx';
import { tell } from '../../components/toasts.tsx';
import {
  draftOfServer,
  emptyServer,
  faultsOfServer,
  type HeaderDraft,
  type ServerDraft,
  servedBy,
  serversOf,
  type ToolServer,
  withServers,
} from './tool-servers.ts';

interface ServerDialogProps {
  readonly agent: Agent;
  /** Undefined: a new one. */
  readonly server: ToolServer | undefined;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Names a server of tools, or changes its address and headers. */
export function ServerDialog({ agent, server, onClose, onSaved }: ServerDialogProps) {
  const [draft, setDraft] = useState<ServerDraft>(() => (server === undefined ? emptyServer : draftOfServer(server)));
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const form = useId();
  const servers = serversOf(agent);
  const faults = faultsOfServer(
    draft,
    servers.filter((one) => one !== server),
  );
  const shown = tried ? faults : {};
  const change = (part: Partial<ServerDraft>) => setDraft({ ...draft, ...part });
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    setTried(true);
    if (Object.keys(faults).length > 0) return;
    setBusy(true);
    try {
      await annals().agents.put(agent.id, withServers(agent, servedBy(servers, draft, server)));
      tell(`${draft.name} is saved.`);
      onSaved();
      onClose();
    } catch (reason) {
      setError(reason);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={server === undefined ? 'Add a server' : `Edit ${server.name}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" form={form} disabled={isBusy}>
            Save
          </Button>
        </>
      }
    >
      <form id={form} class="form-grid" noValidate onSubmit={(event) => void save(event)}>
        <TextField
          kind="code"
          label="Name"
          hint="Stands before the names of its tools: docs__search."
          error={shown.name}
          value={draft.name}
          onText={(name) => change({ name: name.trim() })}
        />
        <TextField
          kind="url"
          label="Address"
          hint="Of Streamable HTTP. Private addresses need the operator's permission."
          error={shown.url}
          placeholder="https://tools.example.com/mcp"
          value={draft.url}
          onText={(url) => change({ url: url.trim() })}
        />
        <Headers headers={draft.headers} onChange={(headers) => change({ headers })} />
      </form>
      {error === undefined ? undefined : <FailureBox error={error} />}
    </Dialog>
  );
}

function Headers({
  headers,
  onChange,
}: {
  readonly headers: readonly HeaderDraft[];
  readonly onChange: (headers: readonly HeaderDraft[]) => void;
}) {
  const replaced = (place: number, part: Partial<HeaderDraft>) =>
    onChange(headers.map((header, index) => (index === place ? { ...header, ...part } : header)));
  return (
    <fieldset class="tool-headers">
      <legend>Headers</legend>
      <p class="form-text">Sent with each request, to this server alone. Kept encrypted, and never shown again.</p>
      {headers.map(({ name, value, isStored }, index) => (
        <div key={index} class="tool-header">
          <input
            class="control mono"
            aria-label="Name of the header"
            placeholder="Authorization"
            autocomplete="off"
            spellcheck={false}
            readOnly={isStored}
            value={name}
            onInput={(event) => replaced(index, { name: event.currentTarget.value.trim() })}
          />
          <input
            class="control mono"
            type="password"
            aria-label={`Value of ${name === '' ? 'the header' : name}`}
            placeholder={isStored ? 'stays as it is' : 'Bearer …'}
            autocomplete="new-password"
            value={value}
            onInput={(event) => replaced(index, { value: event.currentTarget.value })}
          />
          <Button
            kind="quiet"
            icon="remove"
            aria-label={`Remove the header ${name}`}
            onClick={() => onChange(headers.filter((_header, place) => place !== index))}
          />
        </div>
      ))}
      <Button icon="plus" onClick={() => onChange([...headers, { name: '', value: '', isStored: false }])}>
        Add a header
      </Button>
    </fieldset>
  );
}
