import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { causeText, countText, durationText } from '../../components/numbers.ts';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState } from '../../components/states.tsx';
import { Time } from '../../components/values.tsx';
import { FilterBar, FilterChip, ListCard, SortHeading, sumOf, TotalRow } from '../../lists/list-page.tsx';
import { useList } from '../../lists/use-list.ts';
import { Link, parametersWith, place, setParameters } from '../../router/router.tsx';
import { SeverityBadge } from './log-lines.tsx';
import { RequestPanel } from './request-panel.tsx';

/** What became of each request to an agent. */
export function RequestsView() {
  const open = place.value.parameters.get('request') ?? '';
  const list = useList({
    name: 'request logs',
    defaultSort: 'metadata.createdAt:DESC',
    read: (parameters, signal) => annals().logs.requests.list(parameters, { signal }),
  });
  return (
    <>
      <PageHeader title="Requests" lead="Each request to an agent: how it ended, and how many tokens it used." />
      <FilterBar filter={list.filter} onFilter={list.setFilter} example="triggerAgentId:price-desk promptTokens:>1000">
        <FilterChip label="Failed" term="severity:ERROR" filter={list.filter} onFilter={list.setFilter} />
        <FilterChip label="Warnings" term="severity:WARNING" filter={list.filter} onFilter={list.setFilter} />
      </FilterBar>
      <ListCard
        list={list}
        one="request"
        empty={
          <EmptyState icon="agent" title="No agent has been asked yet">
            <p>Chat with an agent, and its requests are listed here.</p>
          </EmptyState>
        }
      >
        {(logs) => (
          <table class="table">
            <thead>
              <tr>
                <SortHeading label="Time" field="metadata.createdAt" list={list} />
                <SortHeading label="Agent" field="triggerAgentId" list={list} />
                <th scope="col">Outcome</th>
                <SortHeading label="Duration" amount field="durationMs" list={list} />
                <SortHeading label="Tokens in" amount field="promptTokens" list={list} />
                <SortHeading label="Tokens out" amount field="completionTokens" list={list} />
              </tr>
            </thead>
            <tbody>
              {logs.map((log) => (
                <tr key={log.id} class={open === log.id || open === log.requestId ? 'selected' : undefined}>
                  <td class="nowrap">
                    <Link
                      class="row-link"
                      to={{ path: 'desk/requests', parameters: parametersWith({ request: log.id }) }}
                    >
                      <Time at={log.metadata.createdAt} />
                    </Link>
                  </td>
                  <td>
                    <span class="cell-cut">
                      <AgentName id={log.triggerAgentId} />
                    </span>
                  </td>
                  <td>
                    <SeverityBadge severity={log.severity} />{' '}
                    {log.cause === undefined ? undefined : <span class="muted">{causeText(log.cause)}</span>}
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
        <RequestPanel key={open} id={open} onClose={() => setParameters({ request: undefined })} />
      )}
    </>
  );
}
