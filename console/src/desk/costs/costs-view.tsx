import type { CostsOf } from '@annals/client';
import { useMemo } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { BarChart } from '../../charts/bar-chart.tsx';
import { counted, countText, dollarsText } from '../../components/numbers.ts';
import { PageHeader, TableScroll } from '../../components/page.tsx';
import { EmptyState, FailureBox, LoadingLine, Skeleton } from '../../components/states.tsx';
import { Name } from '../../components/values.tsx';
import { place, setParameters } from '../../router/router.tsx';
import { readCosts, type Seen, type SeenBy, seenBys } from './read-costs.ts';
import './costs.css';

const words: Readonly<Record<SeenBy, string>> = { model: 'Model', client: 'Client', agent: 'Agent', user: 'User' };
const nobody: Readonly<Record<SeenBy, string>> = {
  model: 'No model',
  client: 'No client',
  agent: 'Without an agent',
  user: 'Without a user',
};
const ranges = [7, 30, 90, 365] as const;

/** What calls of models cost over time, by what tells them apart. */
export function CostsView() {
  const { parameters } = place.value;
  const by = seenBys.find((one) => one === parameters.get('by')) ?? 'model';
  const days = ranges.find((range) => String(range) === parameters.get('days')) ?? 30;
  const costs = useRequest(`costs ${by} ${days}`, (signal) => readCosts(annals().usage, { by, days, signal }));
  const seen = costs.value;
  return (
    <>
      <PageHeader title="Costs" lead="What calls of models cost, by UTC days. Sums are kept for ever.">
        <select
          class="control costs-choice"
          aria-label="By"
          value={by}
          onChange={(event) => setParameters({ by: event.currentTarget.value })}
        >
          {seenBys.map((one) => (
            <option key={one} value={one}>
              By {words[one].toLowerCase()}
            </option>
          ))}
        </select>
        <select
          class="control costs-choice"
          aria-label="Time"
          value={days}
          onChange={(event) => setParameters({ days: event.currentTarget.value })}
        >
          {ranges.map((range) => (
            <option key={range} value={range}>
              {range} days
            </option>
          ))}
        </select>
      </PageHeader>
      <section class="card" aria-busy={costs.isLoading}>
        <LoadingLine active={costs.isLoading} />
        {costs.error === undefined ? undefined : (
          <div class="card-body">
            <FailureBox error={costs.error} onRetry={costs.reload} />
          </div>
        )}
        {seen === undefined ? (
          costs.error === undefined ? (
            <Skeleton />
          ) : undefined
        ) : seen.total.calls === 0 ? (
          <EmptyState icon="clock" title="No calls in this time">
            <p>Each call of a model that completions, chats and OpenAI clients make is counted here.</p>
          </EmptyState>
        ) : (
          <Shown seen={seen} />
        )}
      </section>
    </>
  );
}

function Shown({ seen }: { readonly seen: Seen }) {
  const { by, starts, end, total, items } = seen;
  const series = useMemo(() => seen.series.map((one) => ({ ...one, label: one.label ?? 'others' })), [seen]);
  const unknown = total.callsWithoutCost;
  return (
    <>
      <div class="card-body costs-total">
        <p>
          <span class="costs-sum number" title={`$${total.costUsd}`}>
            {dollarsText(Number(total.costUsd))}
          </span>
          <span class="muted">
            {counted(total.calls, 'call')}
            {unknown === 0 ? '' : `; ${countText(unknown)} more than that nobody knows the cost of`}
          </span>
        </p>
        <BarChart
          label={`Costs over time by ${by}, in US dollars`}
          starts={starts}
          end={end}
          detail="day"
          series={series}
          zone="utc"
          unit="usd"
        />
      </div>
      <TableScroll label={`Costs by ${by}`}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{words[by]}</th>
              <th scope="col" class="amount">
                Cost
              </th>
              <th scope="col" class="amount">
                Calls
              </th>
              <th scope="col" class="amount">
                Tokens in
              </th>
              <th scope="col" class="amount">
                Tokens out
              </th>
              <th scope="col" class="amount">
                Cost unknown
              </th>
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <Row key={`${item.name} ${item.others}`} item={item} by={by} colour={colourOf(seen, item)} />
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">Total</th>
              <Amounts of={total} />
            </tr>
          </tfoot>
        </table>
      </TableScroll>
    </>
  );
}

function Row({ item, by, colour }: { readonly item: CostsOf; readonly by: SeenBy; readonly colour: string }) {
  const { name, others } = item;
  return (
    <tr>
      <td>
        <span class={`costs-swatch ${colour}`} aria-hidden="true" />
        {name === null ? (
          <span class="muted">{others ? 'All others' : nobody[by]}</span>
        ) : by === 'agent' ? (
          <AgentName id={name} />
        ) : (
          <Name text={name} />
        )}
      </td>
      <Amounts of={item} />
    </tr>
  );
}

function Amounts({ of }: { readonly of: Seen['total'] }) {
  const { costUsd, calls, inputTokens, outputTokens, callsWithoutCost } = of;
  return (
    <>
      <td class="amount" title={`$${costUsd}`}>
        {dollarsText(Number(costUsd))}
      </td>
      <td class="amount">{countText(calls)}</td>
      <td class="amount">{countText(inputTokens)}</td>
      <td class="amount">{countText(outputTokens)}</td>
      <td class="amount">{callsWithoutCost === 0 ? '' : counted(callsWithoutCost, 'call')}</td>
    </>
  );
}

/** The colour of its bars: that of the others where it has none of its own. */
function colourOf({ series }: Seen, { name }: CostsOf): string {
  const found = name === null ? undefined : series.find(({ label }) => label === name);
  return `costs${found?.colour ?? '--ink-faint'}`;
}
