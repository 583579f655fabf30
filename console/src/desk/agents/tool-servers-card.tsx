import type { Agent } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { ConfirmButton } from '../../components/overlays.tsx';
import { Badge, later } from '../../components/states.tsx';
import { Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import { serversOf, type ToolServer, withServers } from './tool-servers.ts';
import '../desk.css';

const ApprovalDialog = later(async () => (await import('./approval-dialog.tsx')).ApprovalDialog);
const ServerDialog = later(async () => (await import('./server-dialog.tsx')).ServerDialog);

type Open =
  | { readonly what: 'server'; readonly server: ToolServer | undefined }
  | { readonly what: 'tools'; readonly server: ToolServer };

/** The servers whose tools an agent may use, and which of these are approved. */
export function ToolServersCard({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const [open, setOpen] = useState<Open>();
  const servers = serversOf(agent);
  const mayWrite = allows('ai.agent_manage');
  const close = () => setOpen(undefined);
  if (servers.length === 0 && !mayWrite) return null;
  return (
    <section class="card tool-servers">
      <header class="card-header tool-servers-header">
        <h2>Tools of other servers</h2>
        {mayWrite && servers.length < 4 ? (
          <Button icon="plus" onClick={() => setOpen({ what: 'server', server: undefined })}>
            Add a server
          </Button>
        ) : undefined}
      </header>
      <div class="card-body form-grid">
        {servers.length === 0 ? (
          <p class="muted">
            None. A server that speaks the Model Context Protocol can lend the agent its tools. You approve each of
            them.
          </p>
        ) : undefined}
        {servers.map((server) => (
          <section key={server.name} class="tool-server stack-medium" aria-label={`Server ${server.name}`}>
            <header>
              <div class="tool-server-name">
                <Name as="h3" class="mono" text={server.name} />
                <Name as="div" class="muted mono tool-server-url" text={server.url} />
                {Object.keys(server.headers).length === 0 ? undefined : (
                  <div class="muted">With the headers {Object.keys(server.headers).join(', ')}</div>
                )}
              </div>
              {mayWrite ? (
                <div class="page-actions">
                  <Button icon="refresh" onClick={() => setOpen({ what: 'tools', server })}>
                    Choose tools
                  </Button>
                  <Button
                    icon="edit"
                    aria-label={`Edit ${server.name}`}
                    onClick={() => setOpen({ what: 'server', server })}
                  />
                  <ConfirmButton
                    kind="danger"
                    icon="remove"
                    aria-label={`Remove ${server.name}`}
                    ask={{
                      title: 'Remove the server?',
                      label: 'Remove',
                      run: async () => {
                        const rest = servers.filter((other) => other !== server);
                        await annals().agents.put(agent.id, withServers(agent, rest));
                        tell(`${server.name} is removed.`);
                        onChanged();
                      },
                      body: <p>The agent no longer has its tools, and the values of its headers are deleted.</p>,
                    }}
                  />
                </div>
              ) : undefined}
            </header>
            <ToolList server={server} />
          </section>
        ))}
      </div>
      {open?.what === 'server' ? (
        <ServerDialog agent={agent} server={open.server} onClose={close} onSaved={onChanged} />
      ) : undefined}
      {open?.what === 'tools' ? (
        <ApprovalDialog agent={agent} server={open.server} onClose={close} onSaved={onChanged} />
      ) : undefined}
    </section>
  );
}

function ToolList({ server: { name, tools } }: { readonly server: ToolServer }) {
  if (tools.length === 0) return <p class="muted">No tool is approved.</p>;
  return (
    <ul class="tool-list stack-small">
      {tools.map(({ name: tool, state }) => (
        <li key={tool}>
          <Name class="mono" text={`${name}__${tool}`} />
          {state === undefined ? (
            <Badge tone="good">approved</Badge>
          ) : (
            <Badge tone="warn">{state === 'changed' ? 'has changed, not offered' : 'missing, not offered'}</Badge>
          )}
        </li>
      ))}
    </ul>
  );
}
