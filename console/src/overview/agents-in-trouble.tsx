import { AgentName } from '../agent-names/agent-name.tsx';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { Badge } from '../components/badge.tsx';
import { causeText } from '../components/log-words.ts';
import { Name } from '../components/name.tsx';
import { counted } from '../components/numbers.ts';
import { quoted } from '../query-text/quoted.ts';
import { Link } from '../router/link.tsx';
import { OverviewCard } from './overview-card.tsx';
import { type TroubledAgent, troubleOf } from './trouble.ts';

/** Failed requests that are looked at. */
const maxFailures = 500;

/** Agents that the service has disabled, and those whose requests failed in the last 24 hours. */
export function AgentsInTrouble({ from }: { readonly from: number }) {
  const since = `metadata.createdAt:>=${quoted(new Date(from).toISOString())}`;
  const requested = useRequest(`trouble ${from}`, async (signal) => {
    const [disabled, failed] = await Promise.all([
      annals().agents.list({ q: 'disabledReason:exists', pageSize: 100 }, { signal }),
      annals().logs.requests.list(
        {
          q: `severity:ERROR ${since}`,
          fields: 'triggerAgentId,cause',
          sort: 'metadata.createdAt:DESC',
          pageSize: maxFailures,
        },
        { signal },
      ),
    ]);
    return { agents: troubleOf(disabled.items, failed.items), isCut: failed.next !== undefined };
  });
  return (
    <OverviewCard title="Agents with trouble" requested={requested}>
      {({ agents, isCut }) =>
        agents.length === 0 ? (
          <p class="muted">No agent was disabled, and no request failed in the last 24 hours.</p>
        ) : (
          <ul class="trouble">
            {agents.map((agent) => (
              <TroubleItem key={agent.id} agent={agent} since={since} />
            ))}
            {isCut ? <li class="muted">Of the failed requests the latest {maxFailures} are counted.</li> : undefined}
          </ul>
        )
      }
    </OverviewCard>
  );
}

function TroubleItem({
  agent: { id, disabledReason, failures, causes },
  since,
}: {
  agent: TroubledAgent;
  since: string;
}) {
  return (
    <li>
      <p class="trouble-name">
        <Link to={{ path: 'desk/agent', parameters: { id } }}>
          <AgentName id={id} withId />
        </Link>
        {disabledReason === undefined ? undefined : <Badge tone="bad">disabled by Annals</Badge>}
      </p>
      {disabledReason === undefined ? undefined : (
        <p class="muted">
          <Name text={disabledReason} />
        </p>
      )}
      {failures === 0 ? undefined : (
        <p class="muted">
          <Link
            to={{
              path: 'desk/requests',
              parameters: { q: `triggerAgentId:${quoted(id)} severity:ERROR ${since}` },
            }}
          >
            {counted(failures, 'failed request')}
          </Link>
          {causes.length === 0 ? '' : `: ${causes.map(causeText).join('; ')}`}
        </p>
      )}
    </li>
  );
}
