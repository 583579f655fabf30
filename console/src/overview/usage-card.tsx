import type { UsageOfDay } from '@annals/client';
import { useMemo, useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { BarChart } from '../charts/bar-chart.tsx';
import { countText } from '../components/numbers.ts';
import { OverviewCard } from './overview-card.tsx';

type Amount = 'entries' | 'requests' | 'tokens';

const amounts: readonly { readonly amount: Amount; readonly word: string }[] = [
  { amount: 'entries', word: 'Entries' },
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
      <ul class="changes-figures">
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
