import type { Agent } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { HeadersField, TextField } from '../../components/forms.tsx';
import { Dialog } from '../../components/overlays.tsx';
import { tell } from '../../components/toasts.ts';
import {
  draftOfServer,
  emptyServer,
  faultsOfServer,
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

/** Adds a server of tools, or changes its address and headers. */
export function ServerDialog({ agent, server, onClose, onSaved }: ServerDialogProps) {
  const [draft, setDraft] = useState<ServerDraft>(() => (server === undefined ? emptyServer : draftOfServer(server)));
  const [tried, setTried] = useState(false);
  const servers = serversOf(agent);
  const others = servers.filter((known) => known !== server);
  const faults = faultsOfServer(draft, others);
  const shown = tried ? faults : {};
  const change = (part: Partial<ServerDraft>) => setDraft({ ...draft, ...part });
  const run = async () => {
    setTried(true);
    if (Object.keys(faults).length > 0) return false;
    await annals().agents.put(agent.id, withServers(agent, servedBy(servers, draft, server)));
    tell(`${draft.name} is saved.`);
    return onSaved();
  };
  return (
    <Dialog
      title={server === undefined ? 'Add a server' : `Edit ${server.name}`}
      onClose={onClose}
      actions={[{ label: 'Save', run }]}
    >
      <TextField
        kind="code"
        label="Name"
        hint="The prefix of the names of its tools: docs__search."
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
      <HeadersField
        label="Headers"
        hint="Sent with each request, to this server alone. Kept encrypted, and never shown again."
        headers={draft.headers}
        onChange={(headers) => change({ headers })}
      />
    </Dialog>
  );
}
