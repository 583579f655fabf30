import type { Agent } from '@annals/client';
import { useState } from 'preact/hooks';
import { forgetAgentNames } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button, Icon } from '../../components/buttons.tsx';
import { textFor } from '../../components/numbers.ts';
import { ConfirmDialog } from '../../components/overlays.tsx';
import { PageHeader } from '../../components/page.tsx';
import { FailureBox, Skeleton } from '../../components/states.tsx';
import { tell } from '../../components/toasts.tsx';
import { LongText, Name, Time } from '../../components/values.tsx';
import { HistoryLink } from '../../lists/list-page.tsx';
import { quoted } from '../../query-text/quoted.ts';
import { Link, navigate, place } from '../../router/router.tsx';
import { addressOf, agentTitle, hasKey, providerNames } from './agent-draft.ts';
import { AgentState } from './agent-state.tsx';
import { EnableButton } from './enable-button.tsx';
import { ToolServersCard } from './tool-servers-card.tsx';

/** One agent: what it is, whether it answers, and where one goes from here. */
export function AgentView() {
  const id = place.value.parameters.get('id') ?? '';
  const { value: agent, error, reload } = useRequest(`agent ${id}`, (signal) => annals().agents.get(id, { signal }));
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (agent === undefined || agent.id !== id) return <Skeleton />;
  return (
    <>
      <PageHeader
        title={
          <>
            <Name text={agentTitle(agent)} /> <AgentState agent={agent} />
          </>
        }
        lead={<Name text={textFor(agent.description) ?? agent.id} />}
      >
        <AgentActions agent={agent} onChanged={reload} />
      </PageHeader>
      {agent.disabledReason === undefined ? undefined : <WhyDisabled agent={agent} onChanged={reload} />}
      <div class="desk-columns">
        <section class="card">
          <h2 class="card-header">Instructions</h2>
          <div class="card-body">
            {agent.userPrompt === '' ? <span class="muted">None.</span> : <LongText text={agent.userPrompt} />}
          </div>
        </section>
        <section class="card">
          <h2 class="card-header">Settings</h2>
          <div class="card-body">
            <AgentFacts agent={agent} />
          </div>
        </section>
      </div>
      <ToolServersCard agent={agent} onChanged={reload} />
    </>
  );
}

function AgentActions({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const [isDeleting, setDeleting] = useState(false);
  const mayWrite = allows('ai.agent_manage');
  return (
    <>
      {allows('ai.agentexecution_manage') && agent.enabled ? (
        <Button
          kind="primary"
          icon="send"
          onClick={() => navigate({ path: 'desk/chat', parameters: { agent: agent.id } })}
        >
          Chat
        </Button>
      ) : undefined}
      {mayWrite ? (
        <Button icon="edit" onClick={() => navigate({ path: 'desk/agent/edit', parameters: { id: agent.id } })}>
          Edit
        </Button>
      ) : undefined}
      {agent.disabledReason === undefined ? <EnableButton agent={agent} onChanged={onChanged} /> : undefined}
      {mayWrite ? (
        <Button kind="danger" icon="remove" aria-label="Delete the agent" onClick={() => setDeleting(true)} />
      ) : undefined}
      {isDeleting ? (
        <ConfirmDialog
          title="Delete the agent?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await annals().agents.delete(agent.id);
            forgetAgentNames();
            tell(`${agentTitle(agent)} is deleted.`);
            navigate({ path: 'desk/agents' });
          }}
        >
          <p>
            <Name text={agentTitle(agent)} /> stops answering, and its settings and its key are deleted. Its logs and
            its history stay.
          </p>
        </ConfirmDialog>
      ) : undefined}
    </>
  );
}

function WhyDisabled({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  return (
    <section class="failure desk-trouble" aria-label="Why the agent is disabled">
      <Icon name="warning" size={18} />
      <div>
        <p class="failure-title">Annals has disabled this agent.</p>
        <p>
          <Name text={agent.disabledReason ?? ''} />
        </p>
        <p class="muted">
          Correct the cause first. Annals disables the agent again after ten more failures like these.
        </p>
        <div class="page-actions">
          <EnableButton agent={agent} onChanged={onChanged} />
          <Link
            to={{
              path: 'desk/requests',
              parameters: { q: `triggerAgentId:${quoted(agent.id)} severity:ERROR` },
            }}
          >
            See what failed
          </Link>
        </div>
      </div>
    </section>
  );
}

function AgentFacts({ agent }: { readonly agent: Agent }) {
  const { llmConfig, nativeTools, metadata } = agent;
  const address = addressOf(llmConfig);
  const tools = nativeTools.map((tool) => (typeof tool === 'string' ? tool : tool.id));
  return (
    <dl class="facts">
      <dt>Id</dt>
      <dd class="mono">
        <Name text={agent.id} />
      </dd>
      <dt>Provider</dt>
      <dd>{providerNames[llmConfig.provider]}</dd>
      <dt>Model</dt>
      <dd>{llmConfig.model === undefined ? 'chosen by the service' : <Name text={llmConfig.model} />}</dd>
      {address === undefined ? undefined : (
        <>
          <dt>Address</dt>
          <dd class="mono">
            <Name text={address} />
          </dd>
        </>
      )}
      <dt>Key</dt>
      <dd>{hasKey(llmConfig) ? 'set; it is never shown' : 'none'}</dd>
      <dt>Temperature</dt>
      <dd>{llmConfig.temperature ?? 'of the model'}</dd>
      <dt>Longest answer</dt>
      <dd>{llmConfig.maxTokens === undefined ? 'of the service' : `${llmConfig.maxTokens} tokens`}</dd>
      <dt>Tools of Annals</dt>
      <dd>{tools.length === 0 ? 'none' : tools.join(', ')}</dd>
      <dt>Changed</dt>
      <dd>
        <Time at={metadata.modifiedAt} />, version {metadata.version}
      </dd>
      <dt>See also</dt>
      <dd class="link-list">
        <Link to={{ path: 'desk/requests', parameters: { q: `triggerAgentId:${quoted(agent.id)}` } }}>Requests</Link>
        <Link to={{ path: 'desk/sessions', parameters: { q: `agents:${quoted(agent.id)}` } }}>Sessions</Link>
        <HistoryLink entity="agent" entityId={agent.id} />
      </dd>
    </dl>
  );
}
