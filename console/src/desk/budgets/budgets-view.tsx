import type { Budget, BudgetInput } from '@annals/client';
import { useState } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { Button } from '../../components/buttons.tsx';
import { SelectField, TextField } from '../../components/forms.tsx';
import { countText, dollarsText } from '../../components/numbers.ts';
import { ConfirmButton, Dialog } from '../../components/overlays.tsx';
import { Progress } from '../../components/states.tsx';
import { Name } from '../../components/text.tsx';
import { ListPage, useList } from '../../lists/list-page.tsx';
import { Link, place, setParameters } from '../../router/router.tsx';
import '../costs/costs.css';

const periods = { day: 'Each day', month: 'Each month', lifetime: 'Forever' } as const;

/** What calls of models may cost and use, and how much of it is used. */
export function BudgetsView() {
  const list = useList({
    name: 'budgets',
    pageSize: 20,
    read: (parameters, signal) => annals().budgets.list(parameters, { signal }),
  });
  const [edited, setEdited] = useState<Budget | BudgetDraft | undefined>(() => draftOfPlace(place.value.parameters));
  const close = () => {
    setEdited(undefined);
    setParameters({ client: undefined, agent: undefined, model: undefined, user: undefined }, { replace: true });
  };
  return (
    <ListPage
      list={list}
      title="Budgets"
      lead="What calls of models may cost or use. A call that may need more is refused."
      example="period:month agent:helper"
      noun="budget"
      empty={{
        icon: 'clock',
        title: 'There is no budget yet',
        text: 'Without one, calls with your own keys have no limit.',
      }}
      add={
        <Button kind="primary" icon="plus" onClick={() => setEdited(newDraft)}>
          New budget
        </Button>
      }
      keyOf={({ id }) => id}
      columns={[
        {
          label: 'Budget',
          sort: 'name',
          cell: ({ id, name }) =>
            name === undefined ? (
              <Name class="mono" text={id} />
            ) : (
              <>
                <Name text={name} /> <Name as="div" class="mono muted cell-cut" text={id} />
              </>
            ),
        },
        { label: 'What counts', cell: (budget) => <Counted budget={budget} /> },
        { label: 'Period', sort: 'period', class: 'nowrap', cell: ({ period }) => periods[period] },
        { label: 'Used', class: 'budget-use', cell: (budget) => <Used budget={budget} /> },
        {
          label: 'E-mails at',
          class: 'nowrap',
          cell: ({ alerts }) => alerts.map((percent) => `${percent} %`).join(', '),
        },
        {
          label: 'Actions',
          class: 'nowrap',
          cell: (budget) => (
            <>
              <Button kind="quiet" aria-label={`Edit ${nameOf(budget)}`} onClick={() => setEdited(budget)}>
                Edit
              </Button>
              <ConfirmButton
                kind="quiet"
                aria-label={`Delete ${nameOf(budget)}`}
                ask={{
                  title: `Delete the budget ${nameOf(budget)}?`,
                  run: async () => {
                    await annals().budgets.delete(budget.id);
                    list.reload();
                  },
                  body: <p>Calls are no longer limited by it. What was spent stays in the costs.</p>,
                }}
              >
                Delete
              </ConfirmButton>
            </>
          ),
        },
      ]}
    >
      {edited === undefined ? undefined : (
        <BudgetDialog
          budget={'metadata' in edited ? edited : undefined}
          draft={'metadata' in edited ? draftOf(edited) : edited}
          onSaved={list.reload}
          onClose={close}
        />
      )}
    </ListPage>
  );
}

function nameOf({ id, name }: Budget): string {
  return name ?? id;
}

function Counted({ budget: { client, agent, model, user } }: { readonly budget: Budget }) {
  const name = client ?? model ?? user;
  if (agent === undefined && name === undefined) return <>All calls</>;
  if (user === eachUser) return <>Each user</>;
  const kind = client !== undefined ? 'Client' : agent !== undefined ? 'Agent' : model !== undefined ? 'Model' : 'User';
  return (
    <>
      {kind} {name === undefined ? <AgentName id={agent ?? ''} /> : <Name text={name} />}
    </>
  );
}

/** Read one budget at a time: a list does not include the use. */
function Used({ budget }: { readonly budget: Budget }) {
  const { id, limitUsd, limitTokens, metadata } = budget;
  const read = useRequest(`budget ${id} ${metadata.version}`, (signal) => annals().budgets.get(id, { signal }));
  const limit = Number(limitUsd ?? limitTokens);
  const text = limitUsd === undefined ? countText : dollarsText;
  const use = read.value?.use;
  if (use === undefined) return <>of {text(limit)}</>;
  if (use.users === undefined) return <UseBar budget={budget} since={use.since} use={use} />;
  // What names no user is never limited.
  const users = use.users.filter(({ user }) => user !== '');
  if (users.length === 0) return <>nothing of {text(limit)} each</>;
  return (
    <div class="stack-small">
      {users.slice(0, shownUsers).map((of) => (
        <UseBar key={of.user} budget={budget} since={use.since} use={of} />
      ))}
      {users.length > shownUsers && (
        <Link to={{ path: 'desk/costs', parameters: { by: 'user' } }}>Costs of more users</Link>
      )}
    </div>
  );
}

/** Users of a budget of each user, those with the most use. */
const shownUsers = 3;

type BudgetUse = NonNullable<Budget['use']>;
type UserUse = NonNullable<BudgetUse['users']>[number];

interface UseBarProps {
  readonly budget: Budget;
  readonly since: string;
  readonly use: Omit<BudgetUse, 'since'> & Partial<UserUse>;
}

function UseBar({ budget, since, use }: UseBarProps) {
  const { limitUsd, limitTokens } = budget;
  const limit = Number(limitUsd ?? limitTokens);
  const text = limitUsd === undefined ? countText : dollarsText;
  const { user } = use;
  const spent = Number(use.spentUsd ?? use.spentTokens);
  const reserved = Number(use.reservedUsd ?? use.reservedTokens);
  const share = limit === 0 ? 1 : Math.min(1, (spent + reserved) / limit);
  return (
    <div class={`quota-bar${share >= 0.9 ? ' near' : ''}`} title={`since ${since}`}>
      {user === undefined ? undefined : <Name as="p" text={user} class="cell-cut" />}
      <p class="number">
        {text(spent)} of {text(limit)}
        {reserved === 0 ? '' : `, ${text(reserved)} reserved`}
      </p>
      <Progress share={share} label={`Used of the budget ${nameOf(budget)}${user === undefined ? '' : `: ${user}`}`} />
    </div>
  );
}

const selectors = [
  ['all', 'All calls of the tenant'],
  ['client', 'Calls of a client or key'],
  ['agent', 'Calls of an agent'],
  ['model', 'Calls of a model'],
  ['user', 'Calls of an end user'],
  ['each user', 'Calls of each end user'],
] as const;
/** The user of a budget of each user. */
const eachUser = '*';
const hints = {
  client: 'Its id. Calls of the keys that it made count, too.',
  agent: 'Its id.',
  model: 'As the page Calls names it.',
  user: 'As the page Calls names them.',
} as const;
const ofUsers = 'Keys of a user are limited. Calls of other programs that name a user count, and are never refused.';

interface BudgetDialogProps {
  /** Undefined: a new one. */
  readonly budget: Budget | undefined;
  readonly draft: BudgetDraft;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** Creates or changes a budget. */
function BudgetDialog({ budget, draft: first, onSaved, onClose }: BudgetDialogProps) {
  const [draft, setDraft] = useState(first);
  const [tried, setTried] = useState(false);
  const faults = tried ? faultsOf(draft) : {};
  const text = (name: 'id' | 'title' | 'name' | 'limit' | 'alerts') => ({
    value: draft[name],
    error: name === 'id' || name === 'title' ? undefined : faults[name],
    onText: (written: string) => setDraft({ ...draft, [name]: written }),
  });
  const choice = <Name extends 'by' | 'period' | 'unit'>(name: Name) => ({
    value: draft[name],
    onChoose: (value: BudgetDraft[Name]) => setDraft({ ...draft, [name]: value }),
  });
  const save = async () => {
    setTried(true);
    if (Object.keys(faultsOf(draft)).length > 0) return false;
    const input = inputOf(draft);
    const id = draft.id.trim();
    // With its version, so that changes by others in between are not lost.
    if (budget !== undefined) await annals().budgets.put(budget.id, { ...input, metadata: budget.metadata });
    else await annals().budgets.create(id === '' ? input : { ...input, id });
    return onSaved();
  };
  return (
    <Dialog
      title={budget === undefined ? 'New budget' : `Budget ${nameOf(budget)}`}
      onClose={onClose}
      actions={[{ label: 'Save', run: save }]}
    >
      {budget === undefined ? (
        <TextField kind="code" label="Id" hint="Left empty: a random one." {...text('id')} />
      ) : undefined}
      <TextField kind="name" label="Name" hint="Shown instead of the id. It may be left empty." {...text('title')} />
      <SelectField
        label="What counts"
        hint={draft.by === 'user' || draft.by === 'each user' ? ofUsers : undefined}
        choices={selectors}
        {...choice('by')}
      />
      {draft.by === 'all' || draft.by === 'each user' ? undefined : (
        <TextField kind="code" label={`Which ${draft.by}`} hint={hints[draft.by]} {...text('name')} />
      )}
      <SelectField
        label="Period"
        hint="Days and months are those of UTC."
        choices={[
          ['day', 'A day'],
          ['month', 'A month'],
          ['lifetime', 'Forever'],
        ]}
        {...choice('period')}
      />
      <SelectField
        label="Unit"
        hint="In US dollars, models without a price are refused."
        choices={[
          ['usd', 'US dollars'],
          ['tokens', 'Tokens, in and out together'],
        ]}
        {...choice('unit')}
      />
      <TextField kind="number" label="Limit" {...text('limit')} />
      <TextField
        kind="number"
        label="E-mails at percent"
        hint="One e-mail for each and period, to the address in the configuration key notificationEmail."
        {...text('alerts')}
      />
    </Dialog>
  );
}

/** A budget as the form has it. */
interface BudgetDraft {
  readonly id: string;
  readonly title: string;
  readonly by: (typeof selectors)[number][0];
  /** Of the client, the agent, the model or the user. */
  readonly name: string;
  readonly period: Budget['period'];
  readonly unit: 'usd' | 'tokens';
  readonly limit: string;
  readonly alerts: string;
}

const newDraft: BudgetDraft = {
  id: '',
  title: '',
  by: 'all',
  name: '',
  period: 'month',
  unit: 'usd',
  limit: '',
  alerts: '50, 80, 100',
};

/** The new budget that an address names, as the page of costs leads to it; undefined: it names none. */
function draftOfPlace(parameters: URLSearchParams): BudgetDraft | undefined {
  const by = (['client', 'agent', 'model', 'user'] as const).find((name) => parameters.has(name));
  return by === undefined ? undefined : { ...newDraft, by, name: parameters.get(by) ?? '' };
}

function draftOf(budget: Budget): BudgetDraft {
  const named = (['client', 'agent', 'model', 'user'] as const).find((name) => budget[name] !== undefined);
  const by = budget.user === eachUser ? 'each user' : (named ?? 'all');
  return {
    id: budget.id,
    title: budget.name ?? '',
    by,
    name: by === 'all' || by === 'each user' ? '' : (budget[by] ?? ''),
    period: budget.period,
    unit: budget.limitUsd === undefined ? 'tokens' : 'usd',
    limit: budget.limitUsd ?? String(budget.limitTokens),
    alerts: budget.alerts.join(', '),
  };
}

/** What is sent. The service says what is wrong with it, but for what cannot be sent as a number. */
function inputOf({ title, by, name, period, unit, limit, alerts }: BudgetDraft): BudgetInput {
  const written = limit.trim();
  const thresholds = alerts.split(/[,\s]+/).filter((text) => text !== '');
  return {
    ...(title.trim() !== '' && { name: title.trim() }),
    ...(by === 'each user' ? { user: eachUser } : by !== 'all' && { [by]: name.trim() }),
    period,
    ...(unit === 'usd' ? { limitUsd: written } : { limitTokens: Number(written) }),
    alerts: thresholds.map(Number),
  };
}

interface DraftFaults {
  readonly name?: string;
  readonly limit?: string;
  readonly alerts?: string;
}

function faultsOf({ by, name, unit, limit, alerts }: BudgetDraft): DraftFaults {
  const form = unit === 'usd' ? /^(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,12})?$/ : /^[0-9]{1,13}$/;
  return {
    ...(by !== 'all' && by !== 'each user' && name.trim() === '' && { name: `Name the ${by}.` }),
    ...(!form.test(limit.trim()) && {
      limit: unit === 'usd' ? 'US dollars, such as 50 or 0.25.' : 'A whole number of tokens.',
    }),
    ...(!/^(?:\s*(?:100|[1-9][0-9]?)\s*(?:,|$))*$/.test(alerts) && { alerts: 'Percents from 1 to 100, with commas.' }),
  };
}
