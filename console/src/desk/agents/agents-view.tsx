import { annals } from '../../api/annals.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { textFor } from '../../components/numbers.ts';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState } from '../../components/states.tsx';
import { Name, Time } from '../../components/values.tsx';
import { FilterBar, FilterChip, ListCard, SortHeading } from '../../lists/list-page.tsx';
import { useList } from '../../lists/use-list.ts';
import { Link, navigate } from '../../router/router.tsx';
import { agentTitle, providerNames } from './agent-draft.ts';
import { AgentState } from './agent-state.tsx';

/** All agents of the tenant, a page at a time. */
export function AgentsView() {
  const list = useList({
    name: 'agents',
    read: (parameters, signal) => annals().agents.list(parameters, { signal }),
  });
  const add = allows('ai.agent_manage') ? (
    <Button kind="primary" icon="plus" onClick={() => navigate({ path: 'desk/agent/new' })}>
      New agent
    </Button>
  ) : undefined;
  return (
    <>
      <PageHeader title="Agents" lead="Language models with instructions of your own.">
        {add}
      </PageHeader>
      <FilterBar filter={list.filter} onFilter={list.setFilter} example="name.en:Price* llmConfig.provider:shared">
        <FilterChip label="Disabled" term="enabled:false" filter={list.filter} onFilter={list.setFilter} />
      </FilterBar>
      <ListCard
        list={list}
        one="agent"
        empty={
          <EmptyState icon="agent" title="There is no agent yet">
            <p>An agent is a model of a provider with your instructions. It can look into the change history.</p>
            {add}
          </EmptyState>
        }
      >
        {(agents) => (
          <table class="table">
            <thead>
              <tr>
                <SortHeading label="Name" field="name.en" list={list} />
                <th scope="col">State</th>
                <SortHeading label="Provider" field="llmConfig.provider" list={list} />
                <SortHeading label="Model" field="llmConfig.model" list={list} />
                <SortHeading label="Changed" field="metadata.modifiedAt" list={list} />
              </tr>
            </thead>
            <tbody>
              {agents.map((agent) => (
                <tr key={agent.id}>
                  <td>
                    <Link class="row-link" to={{ path: 'desk/agent', parameters: { id: agent.id } }}>
                      <Name text={agentTitle(agent)} />
                    </Link>
                    <div class="muted cell-cut">
                      <Name text={textFor(agent.description) ?? agent.id} />
                    </div>
                  </td>
                  <td>
                    <AgentState agent={agent} />
                  </td>
                  <td>{providerNames[agent.llmConfig.provider]}</td>
                  <td>
                    {agent.llmConfig.model === undefined ? (
                      <span class="muted">of the service</span>
                    ) : (
                      <Name text={agent.llmConfig.model} />
                    )}
                  </td>
                  <td class="nowrap">
                    <Time at={agent.metadata.modifiedAt} detail="minute" />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListCard>
    </>
  );
}
