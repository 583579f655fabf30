import type { Agent } from '@annals/client';
import { quoted } from '../../../../src/query/written.ts';
import { forgetAgentNames } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button, WorkButton } from '../../components/buttons.tsx';
import { Icon } from '../../components/icon.tsx';
import { textFor } from '../../components/numbers.ts';
import { ConfirmButton } from '../../components/overlays.tsx';
import { Card, Fact, PageHeader } from '../../components/page.tsx';
import { Answer, Badge, EmptyState, FailureBox, Skeleton } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { LongText, Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import { Time } from '../../components/values.tsx';
import { HistoryLink, ListPage, useList } from '../../lists/list-page.tsx';
import { Link, navigate, place } from '../../router/router.tsx';
import { addressOf, agentTitle, hasKey, providerNames } from './agent-draft.ts';
import { ToolServersCard } from './tool-servers-card.tsx';

/** All agents of the tenant, a page at a time. */
export function AgentsView() {
  const list = useList({
    name: 'agents',
    read: (parameters, signal) => annals().agents.list(parameters, { signal }),
  });
  return (
    <ListPage
      list={list}
      title="Agents"
      lead="Language models with instructions of your own."
      example="name.en:Price* llmConfig.provider:shared"
      chips={[['Disabled', 'enabled:false']]}
      noun="agent"
      empty={{
        icon: 'agent',
        title: 'There is no agent yet',
        text: 'An agent is a model of a provider with your instructions. It can search the change history.',
      }}
      add={
        allows('ai.agent_manage') ? (
          <Button kind="primary" icon="plus" onClick={() => navigate({ path: 'desk/agent/new' })}>
            New agent
          </Button>
        ) : undefined
      }
      keyOf={({ id }) => id}
      columns={[
        {
          label: 'Name',
          sort: 'name.en',
          cell: (agent) => (
            <>
              <Link class="row-link" to={{ path: 'desk/agent', parameters: { id: agent.id } }}>
                <Name text={agentTitle(agent)} />
              </Link>
              <Name as="div" class="muted cell-cut" text={textFor(agent.description) ?? agent.id} />
            </>
          ),
        },
        { label: 'State', cell: (agent) => <AgentState agent={agent} /> },
        { label: 'Provider', sort: 'llmConfig.provider', cell: ({ llmConfig }) => providerNames[llmConfig.provider] },
        {
          label: 'Model',
          sort: 'llmConfig.model',
          cell: ({ llmConfig: { model } }) =>
            model === undefined ? <span class="muted">of the service</span> : <Name text={model} />,
        },
        {
          label: 'Changed',
          sort: 'metadata.modifiedAt',
          class: 'nowrap',
          cell: ({ metadata }) => <Time at={metadata.modifiedAt} detail="minute" />,
        },
      ]}
    />
  );
}

/** Whether an agent answers, or why not. */
function AgentState({ agent: { enabled, disabledReason } }: { readonly agent: Agent }) {
  if (enabled) return <Badge tone="good">enabled</Badge>;
  return disabledReason === undefined ? (
    <Badge tone="plain">disabled</Badge>
  ) : (
    <Badge tone="bad">disabled by Annals</Badge>
  );
}

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
        <Card title="Instructions">
          {agent.userPrompt === '' ? <span class="muted">None.</span> : <LongText text={agent.userPrompt} />}
        </Card>
        <Card title="Settings">
          <AgentFacts agent={agent} />
        </Card>
      </div>
      <ToolServersCard agent={agent} onChanged={reload} />
    </>
  );
}

interface AgentActionsProps {
  readonly agent: Agent;
  readonly onChanged: () => void;
}

function AgentActions({ agent, onChanged }: AgentActionsProps) {
  const { id } = agent;
  const mayWrite = allows('ai.agent_manage');
  return (
    <>
      {allows('ai.agentexecution_manage') && agent.enabled ? (
        <Button kind="primary" icon="send" onClick={() => navigate({ path: 'desk/chat', parameters: { agent: id } })}>
          Chat
        </Button>
      ) : undefined}
      {mayWrite ? (
        <Button icon="edit" onClick={() => navigate({ path: 'desk/agent/edit', parameters: { id } })}>
          Edit
        </Button>
      ) : undefined}
      {agent.disabledReason === undefined ? <EnableButton agent={agent} onChanged={onChanged} /> : undefined}
      {mayWrite ? (
        <ConfirmButton
          kind="danger"
          icon="remove"
          aria-label="Delete the agent"
          ask={{
            title: 'Delete the agent?',
            run: async () => {
              await annals().agents.delete(id);
              forgetAgentNames();
              tell(`${agentTitle(agent)} is deleted.`);
              navigate({ path: 'desk/agents' });
            },
            body: (
              <p>
                <Name text={agentTitle(agent)} /> stops answering, and its settings and its key are deleted. Its logs
                and its history stay.
              </p>
            ),
          }}
        />
      ) : undefined}
    </>
  );
}

/** Enables an agent that is disabled, or disables it. */
function EnableButton({ agent, onChanged }: AgentActionsProps) {
  if (!allows('ai.agent_manage')) return null;
  const turn = async () => {
    await annals().agents.patch(agent.id, [{ op: 'REPLACE', path: '/enabled', value: !agent.enabled }]);
    tell(`${agentTitle(agent)} is ${agent.enabled ? 'disabled' : 'enabled'}.`);
    onChanged();
  };
  return (
    <WorkButton run={turn}>
      {agent.enabled ? 'Disable' : agent.disabledReason === undefined ? 'Enable' : 'Enable again'}
    </WorkButton>
  );
}

function WhyDisabled({ agent, onChanged }: AgentActionsProps) {
  const failures = { q: `triggerAgentId:${quoted(agent.id)} severity:ERROR` };
  return (
    <section class="failure desk-trouble" aria-label="Why the agent is disabled">
      <Icon name="warning" size={18} />
      <div>
        <p class="failure-title">Annals has disabled this agent.</p>
        <Name as="p" text={agent.disabledReason ?? ''} />
        <p class="muted">
          Correct the cause first. Annals disables the agent again after ten more failures like these.
        </p>
        <div class="page-actions">
          <EnableButton agent={agent} onChanged={onChanged} />
          <Link to={{ path: 'desk/requests', parameters: failures }}>See what failed</Link>
        </div>
      </div>
    </section>
  );
}

function AgentFacts({ agent: { id, llmConfig, nativeTools, metadata } }: { readonly agent: Agent }) {
  const tools = nativeTools.map((tool) => (typeof tool === 'string' ? tool : tool.id));
  return (
    <dl class="facts">
      <Fact label="Id" class="mono" text={id} />
      <Fact label="Provider">{providerNames[llmConfig.provider]}</Fact>
      <Fact label="Model" text={llmConfig.model}>
        chosen by the service
      </Fact>
      <Fact label="Address" class="mono" text={addressOf(llmConfig)} />
      <Fact label="Key">{hasKey(llmConfig) ? 'set; it is never shown' : 'none'}</Fact>
      <Fact label="Temperature">{llmConfig.temperature ?? 'of the model'}</Fact>
      <Fact label="Longest answer">
        {llmConfig.maxTokens === undefined ? 'of the service' : `${llmConfig.maxTokens} tokens`}
      </Fact>
      <Fact label="Tools of Annals">{tools.length === 0 ? 'none' : tools.join(', ')}</Fact>
      <Fact label="Changed">
        <Time at={metadata.modifiedAt} />, version {metadata.version}
      </Fact>
      <Fact label="See also" class="link-list">
        <Link to={{ path: 'desk/requests', parameters: { q: `triggerAgentId:${quoted(id)}` } }}>Requests</Link>
        <Link to={{ path: 'desk/sessions', parameters: { q: `agents:${quoted(id)}` } }}>Sessions</Link>
        <HistoryLink entity="agent" entityId={id} />
      </Fact>
    </dl>
  );
}

/** The models that the service knows. An agent may name others. */
export function ModelsView() {
  const request = useRequest('models', (signal) => annals().models.list({ signal }));
  return (
    <>
      <PageHeader title="Models" lead="The models that Annals knows of each provider. An agent may use others too." />
      <Answer of={request}>
        {(providers) =>
          providers.length === 0 ? (
            <EmptyState icon="agent" title="The service knows no model">
              <p>The operator names models in the file of ANNALS_MODELS_FILE.</p>
            </EmptyState>
          ) : (
            <div class="stack">
              {providers.map(({ provider, models }) => (
                <section key={provider} class="card">
                  <h2 class="card-header">{providerNames[provider]}</h2>
                  <DataTable
                    label={`Models of ${providerNames[provider]}`}
                    items={models}
                    keyOf={({ id }) => id}
                    columns={[
                      { label: 'Model', class: 'nowrap', cell: ({ name }) => <Name text={name} /> },
                      { label: 'Id', class: 'mono nowrap', cell: ({ id }) => <Name text={id} /> },
                      {
                        label: 'Reasoning',
                        cell: ({ thinking }) =>
                          thinking === undefined ? <span class="muted">not known</span> : thinking ? 'yes' : 'no',
                      },
                      {
                        label: 'About',
                        class: 'muted',
                        cell: ({ description }) => (description === undefined ? '' : <Name text={description} />),
                      },
                    ]}
                  />
                </section>
              ))}
            </div>
          )
        }
      </Answer>
    </>
  );
}
