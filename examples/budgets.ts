// Limits what calls of models cost in a month, and shows what is used of it. Run it with: node examples/budgets.ts
// With curl: curl -s "$ANNALS_URL/usage/demo/budgets" -H "Authorization: Bearer $TOKEN"
import { demoClient } from './annals.ts';

const { budgets } = demoClient('usage.budget_manage');

// A budget that is there already is replaced.
await budgets.put('example-month', { period: 'month', limitUsd: '50', alerts: [80, 100] });
const { id } = await budgets.create({ model: 'gpt-5.4', period: 'day', limitTokens: 2_000_000 });

const budget = await budgets.get('example-month');
console.log(`$${budget.use?.spentUsd} of $${budget.limitUsd} since ${budget.use?.since}`);

// A write with an old version is refused.
await budgets.put(budget.id, { ...budget, limitUsd: '60' });
await budgets.put(budget.id, { ...budget, limitUsd: '70' }).catch((error: unknown) => console.log(String(error)));
for await (const one of budgets.list()) console.log(one.id, one.period, one.limitUsd ?? one.limitTokens);

for (const one of [budget.id, id]) await budgets.delete(one);
