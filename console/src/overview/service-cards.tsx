import type { UsageOfDay } from '@annals/client';
import { useMemo, useState } from 'preact/hooks';
import { quoted } from '../../../src/query/written.ts';
import { AgentName } from '../agent-names/agent-names.tsx';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { BarChart } from '../charts/bar-chart.tsx';
import { causeText, counted, countText } from '../components/numbers.ts';
import { QuotaBars } from '../components/quota-bars.tsx';
import { Badge } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { Link } from '../router/router.tsx';
import { type ChangeRecorder, OverviewCard, recorderText } from './overview-card.tsx';
import { type TroubledAgent, troubleOf } from './trouble.ts';

type Amount = 'entries' | 'requests' | 'tokens';

const amounts: readonly { readonly amount: Amount; readonly word: string }[] = [
  { amount: 'entries', word: 'Changes' },
  { amount: 'requests', word: 'Requests' },
  { amount: 'tokens', word: 'Tokens' },
];

const dayLength = 86_400_000;

/** What the tenant has used by day, over 30 days until `now` (milliseconds since 1970). */
export function UsageCard({ now }: { readonly now: number }) {
  const requested = useRequest(`usage by day ${now}`, (signal) => annals().usage.byDay({}, { signal }));
  return (
    <OverviewCard
      title="Usage"
      wide
      requested={requested}
      aside={<span class="muted">30 days, each from midnight UTC</span>}
    >
      {(days) => <UsageByDay days={days} />}
    </OverviewCard>
  );
}

function UsageByDay({ days }: { readonly days: readonly UsageOfDay[] }) {
  const [shown, setShown] = useState<Amount>('entries');
  const starts = useMemo(() => days.map(({ date }) => Date.parse(date)), [days]);
  const series = useMemo(
    () => [{ label: shown, colour: '--accent', counts: days.map((day) => amountOf(day, shown)) }],
    [days, shown],
  );
  return (
    <div class="changes">
      <ul class="changes-figures stack-small">
        {amounts.map(({ amount, word }) => (
          <li key={amount}>
            <button type="button" class="usage-amount" aria-pressed={amount === shown} onClick={() => setShown(amount)}>
              <span>{word}</span>
              <span class="number">{countText(days.reduce((sum, day) => sum + amountOf(day, amount), 0))}</span>
            </button>
          </li>
        ))}
      </ul>
      <BarChart
        label={`Usage by day: ${shown}`}
        starts={starts}
        end={(starts.at(-1) ?? 0) + dayLength}
        detail="day"
        series={series}
        zone="utc"
      />
    </div>
  );
}

function amountOf(day: UsageOfDay, amount: Amount): number {
  return amount === 'tokens' ? day.inputTokens + day.outputTokens : day[amount];
}

/** How changes come in, and when each recorder did so last. `now` is that of the page, in milliseconds since 1970. */
export function RecordersCard({ now }: { readonly now: number }) {
  const requested = useRequest(`recorders ${now}`, (signal) => annals().history.recorders({ signal }));
  return (
    <OverviewCard title="How changes come in" requested={requested}>
      {({ recorders, since }) => (
        <>
          {recorders.length === 0 ? (
            <p class="muted">
              Nothing has come in{since === undefined ? '' : ' since Annals keeps this list'}. The guides say how an
              application records its changes.
            </p>
          ) : (
            <ul class="recorders">
              {recorders.map((recorder) => (
                <RecorderItem key={`${recorder.way} ${recorder.by}`} recorder={recorder} />
              ))}
            </ul>
          )}
          {since === undefined ? undefined : (
            <p class="recorders-note muted">
              Annals keeps this list since <Time at={since} detail="minute" />. It does not show what recorded only
              before.
            </p>
          )}
        </>
      )}
    </OverviewCard>
  );
}

function RecorderItem({ recorder }: { readonly recorder: ChangeRecorder }) {
  return (
    <li>
      <span>
        {recorderText(recorder)}
        {recorder.by === undefined ? undefined : (
          <span class="muted">
            {' '}
            by <Name text={recorder.by} />
          </span>
        )}
      </span>
      <span class="muted">
        last <Time at={recorder.lastRecordedAt} detail="minute" />
      </span>
    </li>
  );
}

/** How much of the shared token's quota is used. */
export function QuotaCard({ now }: { readonly now: number }) {
  const requested = useRequest(`usage ${now}`, (signal) => annals().completions.usage({ signal }));
  return (
    <OverviewCard title="Quota of the shared token" requested={requested}>
      {(usage) => <QuotaBars usage={usage} />}
    </OverviewCard>
  );
}

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
      {disabledReason === undefined ? undefined : <Name as="p" class="muted" text={disabledReason} />}
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
