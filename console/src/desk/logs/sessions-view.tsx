import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { countText, durationText } from '../../components/numbers.ts';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState } from '../../components/states.tsx';
import { Time } from '../../components/values.tsx';
import { FilterBar, FilterChip, ListCard, SortHeading, sumOf, TotalRow } from '../../lists/list-page.tsx';
import { useList } from '../../lists/use-list.ts';
import { Link, parametersWith, place, setParameters } from '../../router/router.tsx';
import { SeverityBadge } from './log-lines.tsx';
import { SessionPanel } from './session-panel.tsx';

/** The conversations with agents, each with all of its tokens. */
export function SessionsView() {
  const open = place.value.parameters.get('session') ?? '';
  const list = useList({
    name: 'session logs',
    defaultSort: 'metadata.modifiedAt:DESC',
    read: (parameters, signal) => annals().logs.sessions.list(parameters, { signal }),
  });
  return (
    <>
      <PageHeader title="Sessions" lead="Conversations with agents, each with the tokens of all its requests." />
      <FilterBar filter={list.filter} onFilter={list.setFilter} example="agents:price-desk promptTokens:>1000">
        <FilterChip label="With failures" term="severity:ERROR" filter={list.filter} onFilter={list.setFilter} />
      </FilterBar>
      <ListCard
        list={list}
        one="session"
        empty={
          <EmptyState icon="agent" title="There is no session yet">
            <p>Chat with an agent to begin one.</p>
          </EmptyState>
        }
      >
        {(logs) => (
          <table class="table">
            <thead>
              <tr>
                <SortHeading label="Last request" field="metadata.modifiedAt" list={list} />
                <th scope="col">Agents</th>
                <th scope="col">Outcome</th>
                <SortHeading label="Working time" amount field="durationMs" list={list} />
                <SortHeading label="Tokens in" amount field="promptTokens" list={list} />
                <SortHeading label="Tokens out" amount field="completionTokens" list={list} />
              </tr>
            </thead>
            <tbody>
              {logs.map((log) => (
                <tr key={log.id} class={open === log.id ? 'selected' : undefined}>
                  <td class="nowrap">
                    <Link
                      class="row-link"
                      to={{ path: 'desk/sessions', parameters: parametersWith({ session: log.id }) }}
                    >
                      <Time at={log.metadata.modifiedAt} />
                    </Link>
                  </td>
                  <td>
                    {log.agents.map((agent, index) => (
                      <span key={agent}>
                        {index === 0 ? '' : ', '}
                        <AgentName id={agent} />
                      </span>
                    ))}
                  </td>
                  <td>
                    <SeverityBadge severity={log.severity} />
                  </td>
                  <td class="amount">{durationText(log.durationMs)}</td>
                  <td class="amount">{countText(log.promptTokens)}</td>
                  <td class="amount">{countText(log.completionTokens)}</td>
                </tr>
              ))}
            </tbody>
            <TotalRow list={list} columns={3}>
              <td class="amount">{durationText(sumOf(logs, 'durationMs'))}</td>
              <td class="amount">{countText(sumOf(logs, 'promptTokens'))}</td>
              <td class="amount">{countText(sumOf(logs, 'completionTokens'))}</td>
            </TotalRow>
          </table>
        )}
      </ListCard>
      {open === '' ? undefined : (
        <SessionPanel key={open} id={open} onClose={() => setParameters({ session: undefined })} />
      )}
    </>
  );
}
