import type { Budget } from '@annals/client';
import { useState } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { Button } from '../../components/buttons.tsx';
import { countText, dollarsText } from '../../components/numbers.ts';
import { ConfirmDialog } from '../../components/overlays.tsx';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState, Progress } from '../../components/states.tsx';
import { Name } from '../../components/values.tsx';
import { FilterBar, ListCard, SortHeading } from '../../lists/list-page.tsx';
import { useList } from '../../lists/use-list.ts';
import { BudgetDialog } from './budget-dialog.tsx';
import '../costs/costs.css';

const periods = { day: 'Each day', month: 'Each month', lifetime: 'For ever' } as const;

/** What calls of models may cost and use, and how much of it they have. */
export function BudgetsView() {
  const list = useList({
    name: 'budgets',
    pageSize: 20,
    read: (parameters, signal) => annals().budgets.list(parameters, { signal }),
  });
  const [edited, setEdited] = useState<Budget | 'new'>();
  const [removed, setRemoved] = useState<Budget>();
  const add = (
    <Button kind="primary" icon="plus" onClick={() => setEdited('new')}>
      New budget
    </Button>
  );
  return (
    <>
      <PageHeader title="Budgets" lead="What calls of models may cost or use. A call that may need more is refused.">
        {add}
      </PageHeader>
      <FilterBar filter={list.filter} onFilter={list.setFilter} example="period:month agent:helper" />
      <ListCard
        list={list}
        one="budget"
        empty={
          <EmptyState icon="clock" title="There is no budget yet">
            <p>Without one, calls with your own keys have no limit.</p>
            {add}
          </EmptyState>
        }
      >
        {(budgets) => (
          <table class="table">
            <thead>
              <tr>
                <SortHeading label="Budget" field="_id" list={list} />
                <th scope="col">What counts</th>
                <SortHeading label="Period" field="period" list={list} />
                <th scope="col">Used</th>
                <th scope="col">E-mails at</th>
                <th scope="col">Actions</th>
              </tr>
            </thead>
            <tbody>
              {budgets.map((budget) => (
                <tr key={budget.id}>
                  <td class="mono">
                    <Name text={budget.id} />
                  </td>
                  <td>
                    <Counted budget={budget} />
                  </td>
                  <td class="nowrap">{periods[budget.period]}</td>
                  <td class="budget-use">
                    <Used budget={budget} />
                  </td>
                  <td class="nowrap">{budget.alerts.map((percent) => `${percent} %`).join(', ')}</td>
                  <td class="nowrap">
                    <Button kind="quiet" aria-label={`Edit ${budget.id}`} onClick={() => setEdited(budget)}>
                      Edit
                    </Button>
                    <Button kind="quiet" aria-label={`Delete ${budget.id}`} onClick={() => setRemoved(budget)}>
                      Delete
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListCard>
      {edited === undefined ? undefined : (
        <BudgetDialog
          budget={edited === 'new' ? undefined : edited}
          onSaved={list.reload}
          onClose={() => setEdited(undefined)}
        />
      )}
      {removed === undefined ? undefined : (
        <ConfirmDialog
          title={`Delete the budget ${removed.id}?`}
          action="Delete"
          onConfirm={async () => {
            await annals().budgets.delete(removed.id);
            list.reload();
          }}
          onClose={() => setRemoved(undefined)}
        >
          <p>Calls are no longer limited by it. What was spent stays in the costs.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function Counted({ budget: { client, agent, model } }: { readonly budget: Budget }) {
  if (client !== undefined) {
    return (
      <>
        Client <Name text={client} />
      </>
    );
  }
  if (agent !== undefined) {
    return (
      <>
        Agent <AgentName id={agent} />
      </>
    );
  }
  if (model === undefined) return <>All calls</>;
  return (
    <>
      Model <Name text={model} />
    </>
  );
}

/** Of one budget at a time: a list does not tell it. */
function Used({ budget }: { readonly budget: Budget }) {
  const { id, limitUsd, limitTokens, metadata } = budget;
  const read = useRequest(`budget ${id} ${metadata.version}`, (signal) => annals().budgets.get(id, { signal }));
  const limit = Number(limitUsd ?? limitTokens);
  const text = limitUsd === undefined ? countText : dollarsText;
  const use = read.value?.use;
  if (use === undefined) return <>of {text(limit)}</>;
  const spent = Number(use.spentUsd ?? use.spentTokens);
  const reserved = Number(use.reservedUsd ?? use.reservedTokens);
  const share = limit === 0 ? 1 : Math.min(1, (spent + reserved) / limit);
  return (
    <div class={`quota-bar${share >= 0.9 ? ' near' : ''}`} title={`since ${use.since}`}>
      <p class="number">
        {text(spent)} of {text(limit)}
        {reserved === 0 ? '' : `, ${text(reserved)} reserved`}
      </p>
      <Progress share={share} label={`Used of the budget ${id}`} />
    </div>
  );
}
