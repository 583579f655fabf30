import type { RequestLog, SessionLog } from '@annals/client';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { CopyButton } from '../../components/buttons.tsx';
import { causeText, counted, countText, durationText } from '../../components/numbers.ts';
import { SidePanel } from '../../components/overlays.tsx';
import { Fact } from '../../components/page.tsx';
import { Answer } from '../../components/states.tsx';
import type { Column } from '../../components/table.tsx';
import { Name } from '../../components/text.tsx';
import { Time } from '../../components/values.tsx';
import { ListPage, useList } from '../../lists/list-page.tsx';
import { Link, parametersWith, place, setParameters } from '../../router/router.tsx';
import { LogLines, SeverityBadge } from './log-lines.tsx';
import { SessionPanel } from './session-panel.tsx';

type Amounts = Pick<RequestLog & SessionLog, 'durationMs' | 'promptTokens' | 'completionTokens'>;

/** Columns of amounts with their totals. */
function amounts<Item extends Amounts>(duration: string): readonly Column<Item>[] {
  const column = (label: string, field: keyof Amounts, text: (amount: number) => string): Column<Item> => ({
    label,
    sort: field,
    class: 'amount',
    cell: (item) => text(item[field]),
    sum: (items) => text(items.reduce((sum, item) => sum + item[field], 0)),
  });
  return [
    column(duration, 'durationMs', durationText),
    column('Tokens in', 'promptTokens', countText),
    column('Tokens out', 'completionTokens', countText),
  ];
}

/** The outcome of each request to an agent. */
export function RequestsView() {
  const open = place.value.parameters.get('request') ?? '';
  const list = useList({
    name: 'request logs',
    defaultSort: 'metadata.createdAt:DESC',
    read: (parameters, signal) => annals().logs.requests.list(parameters, { signal }),
  });
  return (
    <ListPage
      list={list}
      title="Requests"
      lead="Each request to an agent: how it ended, and how many tokens it used."
      example="triggerAgentId:price-desk promptTokens:>1000"
      chips={[
        ['Failed', 'severity:ERROR'],
        ['Warnings', 'severity:WARNING'],
      ]}
      noun="request"
      empty={{
        icon: 'agent',
        title: 'There is no request yet',
        text: 'Chat with an agent, and its requests are listed here.',
      }}
      keyOf={({ id }) => id}
      isOpen={(log) => open === log.id || open === log.requestId}
      columns={[
        {
          label: 'Time',
          sort: 'metadata.createdAt',
          class: 'nowrap',
          cell: ({ id, metadata }) => (
            <Link class="row-link" to={{ path: 'desk/requests', parameters: parametersWith({ request: id }) }}>
              <Time at={metadata.createdAt} />
            </Link>
          ),
        },
        {
          label: 'Agent',
          sort: 'triggerAgentId',
          cell: ({ triggerAgentId }) => (
            <span class="cell-cut">
              <AgentName id={triggerAgentId} />
            </span>
          ),
        },
        {
          label: 'Outcome',
          cell: ({ severity, cause }) => (
            <>
              <SeverityBadge severity={severity} />{' '}
              {cause === undefined ? undefined : <span class="muted">{causeText(cause)}</span>}
            </>
          ),
        },
        ...amounts<RequestLog>('Duration'),
      ]}
    >
      {open === '' ? undefined : <RequestPanel key={open} id={open} />}
    </ListPage>
  );
}

/** One request. Its id is that of the log or of the request itself. */
function RequestPanel({ id }: { readonly id: string }) {
  const request = useRequest(`request ${id}`, (signal) => annals().logs.requests.get(id, { signal }));
  return (
    <SidePanel title="Request" onClose={() => setParameters({ request: undefined })}>
      <Answer of={request}>
        {(log) => (
          <div class="stack">
            <dl class="facts">
              <Fact label="Outcome">
                <SeverityBadge severity={log.severity} /> {log.cause === undefined ? undefined : causeText(log.cause)}
              </Fact>
              <Fact label="Agent">
                <Link to={{ path: 'desk/agent', parameters: { id: log.triggerAgentId } }}>
                  <AgentName id={log.triggerAgentId} withId />
                </Link>
              </Fact>
              <Fact label="Time">
                <Time at={log.metadata.createdAt} />, {durationText(log.durationMs)}
              </Fact>
              <Fact label="Tokens">
                {counted(log.promptTokens, 'token')} in, {counted(log.completionTokens, 'token')} out
              </Fact>
              <Fact label="Session" class="mono">
                <Link to={{ path: 'desk/sessions', parameters: { session: log.sessionId } }}>{log.sessionId}</Link>
              </Fact>
              <Fact label="Request id" class="mono">
                <Name text={log.requestId} />
                <CopyButton text={() => log.requestId} what="the request id" />
              </Fact>
            </dl>
            <h3>What happened</h3>
            <LogLines messages={log.messages} />
          </div>
        )}
      </Answer>
    </SidePanel>
  );
}

/** The conversations with agents, each with all of its tokens. */
export function SessionsView() {
  const open = place.value.parameters.get('session') ?? '';
  const list = useList({
    name: 'session logs',
    defaultSort: 'metadata.modifiedAt:DESC',
    read: (parameters, signal) => annals().logs.sessions.list(parameters, { signal }),
  });
  return (
    <ListPage
      list={list}
      title="Sessions"
      lead="Conversations with agents, each with the tokens of all its requests."
      example="agents:price-desk promptTokens:>1000"
      chips={[['With failures', 'severity:ERROR']]}
      noun="session"
      empty={{ icon: 'agent', title: 'There is no session yet', text: 'Chat with an agent to start one.' }}
      keyOf={({ id }) => id}
      isOpen={({ id }) => open === id}
      columns={[
        {
          label: 'Last request',
          sort: 'metadata.modifiedAt',
          class: 'nowrap',
          cell: ({ id, metadata }) => (
            <Link class="row-link" to={{ path: 'desk/sessions', parameters: parametersWith({ session: id }) }}>
              <Time at={metadata.modifiedAt} />
            </Link>
          ),
        },
        {
          label: 'Agents',
          cell: ({ agents }) =>
            agents.map((agent, index) => (
              <span key={agent}>
                {index === 0 ? '' : ', '}
                <AgentName id={agent} />
              </span>
            )),
        },
        { label: 'Outcome', cell: ({ severity }) => <SeverityBadge severity={severity} /> },
        ...amounts<SessionLog>('Working time'),
      ]}
    >
      {open === '' ? undefined : <SessionPanel key={open} id={open} />}
    </ListPage>
  );
}
