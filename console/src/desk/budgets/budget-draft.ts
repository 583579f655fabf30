import type { Budget, BudgetInput } from '@annals/client';

const selectors = ['all', 'client', 'agent', 'model'] as const;

/** A budget as the form has it. */
export interface BudgetDraft {
  readonly id: string;
  readonly by: (typeof selectors)[number];
  readonly name: string;
  readonly period: Budget['period'];
  readonly unit: 'usd' | 'tokens';
  readonly limit: string;
  readonly alerts: string;
}

export const newDraft: BudgetDraft = {
  id: '',
  by: 'all',
  name: '',
  period: 'month',
  unit: 'usd',
  limit: '',
  alerts: '50, 80, 100',
};

export function draftOf(budget: Budget): BudgetDraft {
  const by = selectors.find((selector) => selector !== 'all' && budget[selector] !== undefined) ?? 'all';
  return {
    id: budget.id,
    by,
    name: by === 'all' ? '' : (budget[by] ?? ''),
    period: budget.period,
    unit: budget.limitUsd === undefined ? 'tokens' : 'usd',
    limit: budget.limitUsd ?? String(budget.limitTokens),
    alerts: budget.alerts.join(', '),
  };
}

/** What is sent. The service says what is wrong with it, but for what cannot be sent as a number. */
export function inputOf({ by, name, period, unit, limit, alerts }: BudgetDraft): BudgetInput {
  const written = limit.trim();
  const thresholds = alerts.split(/[,\s]+/).filter((text) => text !== '');
  return {
    ...(by !== 'all' && { [by]: name.trim() }),
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

export function faultsOf({ by, name, unit, limit, alerts }: BudgetDraft): DraftFaults {
  const form = unit === 'usd' ? /^(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,12})?$/ : /^[0-9]{1,13}$/;
  return {
    ...(by !== 'all' && name.trim() === '' && { name: `Name the ${by}.` }),
    ...(!form.test(limit.trim()) && {
      limit: unit === 'usd' ? 'US dollars, such as 50 or 0.25.' : 'A whole number of tokens.',
    }),
    ...(!/^(?:\s*(?:100|[1-9][0-9]?)\s*(?:,|$))*$/.test(alerts) && { alerts: 'Percents from 1 to 100, with commas.' }),
  };
}
