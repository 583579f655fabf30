import type { CostsOf } from '@annals/client';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { BarChart } from '../../charts/bar-chart.tsx';
import { Select } from '../../components/forms.tsx';
import { counted, countText, dollarsText } from '../../components/numbers.ts';
import { PageHeader } from '../../components/page.tsx';
import { Answer, EmptyState, LoadingLine } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { Name } from '../../components/text.tsx';
import { Link, place, setParameters } from '../../router/router.tsx';
import { readCosts, type Seen, type SeenBy, seenBys } from './read-costs.ts';
import './costs.css';

const words: Readonly<Record<SeenBy, string>> = { model: 'Model', client: 'Client', agent: 'Agent', user: 'User' };
const unnamed: Readonly<Record<SeenBy, string>> = {
  model: 'No model',
  client: 'No client',
  agent: 'Without an agent',
  user: 'Without a user',
};
const ranges = [7, 30, 90, 365] as const;

/** What calls of models cost over time, by what tells them apart. */
export function CostsView() {
  const { parameters } = place.value;
  const by = seenBys.find((name) => name === parameters.get('by')) ?? 'model';
  const days = ranges.find((range) => String(range) === parameters.get('days')) ?? 30;
  const costs = useRequest(`costs ${by} ${days}`, (signal) => readCosts(annals().usage, { by, days, signal }));
  return (
    <>
      <PageHeader title="Costs" lead="What calls of models cost, by UTC days. Totals are never deleted.">
        <Select
          class="control costs-choice"
          aria-label="By"
          value={by}
          choices={seenBys.map((name) => [name, `By ${words[name].toLowerCase()}`])}
          onChoose={(name) => setParameters({ by: name })}
        />
        <Select
          class="control costs-choice"
          aria-label="Time"
          value={String(days)}
          choices={ranges.map((range) => [String(range), `${range} days`])}
          onChoose={(range) => setParameters({ days: range })}
        />
      </PageHeader>
      <section class="card" aria-busy={costs.isLoading}>
        <LoadingLine active={costs.isLoading} />
        <Answer of={costs}>
          {(seen) =>
            seen.total.calls === 0 ? (
              <EmptyState icon="clock" title="No calls in this time">
                <p>Each call of a model that completions, chats, OpenAI and Anthropic clients make is counted here.</p>
              </EmptyState>
            ) : (
              <Shown seen={seen} />
            )
          }
        </Answer>
      </section>
    </>
  );
}

function Shown({ seen }: { readonly seen: Seen }) {
  const { by, starts, end, total, items } = seen;
  const series = useMemo(() => seen.series.map((bars) => ({ ...bars, label: bars.label ?? 'others' })), [seen]);
  const unknown = total.callsWithoutCost;
  return (
    <>
      <div class="card-body costs-total stack-medium">
        <p>
          <span class="costs-sum number" title={`$${total.costUsd}`}>
            {dollarsText(Number(total.costUsd))}
          </span>
          <span class="muted">
            {counted(total.calls, 'call')}
            {unknown === 0 ? '' : `; ${countText(unknown)} more whose cost is unknown`}
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
      <DataTable
        label={`Costs by ${by}`}
        items={items}
        keyOf={({ name, others }) => `${name} ${others}`}
        columns={[
          { label: words[by], cell: (item) => <CostName seen={seen} item={item} /> },
          ...amounts.map(([label, text]) => ({ label, class: 'amount', cell: text, sum: () => text(total) })),
          ...(allows('usage.budget_manage')
            ? [{ label: 'Actions', cell: (item: CostsOf) => <BudgetLink by={by} name={item.name} /> }]
            : []),
        ]}
      />
    </>
  );
}

const amounts: readonly (readonly [label: string, text: (of: Seen['total']) => ComponentChildren])[] = [
  ['Cost', ({ costUsd }) => <span title={`$${costUsd}`}>{dollarsText(Number(costUsd))}</span>],
  ['Calls', ({ calls }) => countText(calls)],
  ['Tokens in', ({ inputTokens }) => countText(inputTokens)],
  ['Tokens out', ({ outputTokens }) => countText(outputTokens)],
  ['Cost unknown', ({ callsWithoutCost }) => (callsWithoutCost === 0 ? '' : counted(callsWithoutCost, 'call'))],
];

/** Leads to a new budget of what a row counts, if the row has a name. A budget of the user `*` is one of each user. */
function BudgetLink({ by, name }: { readonly by: SeenBy; readonly name: string | null }) {
  if (name === null || (by === 'user' && name === '*')) return null;
  return (
    <Link to={{ path: 'desk/budgets', parameters: { [by]: name } }} aria-label={`Set a budget for ${name}`}>
      Set a budget
    </Link>
  );
}

function CostName({ seen, item }: { readonly seen: Seen; readonly item: CostsOf }) {
  const { name, others } = item;
  return (
    <>
      <span class={`costs-swatch ${colourOf(seen, item)}`} aria-hidden="true" />
      {name === null ? (
        <span class="muted">{others ? 'All others' : unnamed[seen.by]}</span>
      ) : seen.by === 'agent' ? (
        <AgentName id={name} />
      ) : (
        <Name text={name} />
      )}
    </>
  );
}

/** The colour of its bars: that of the others where it has none of its own. */
function colourOf({ series }: Seen, { name }: CostsOf): string {
  const found = name === null ? undefined : series.find(({ label }) => label === name);
  return `costs${found?.colour ?? '--ink-faint'}`;
}
