// Saves a query of the change history as a view, shows its changes, moves it to the first place, and deletes it. Run it with:
// node examples/views.ts
// With curl: curl -s "$ANNALS_URL/changelog/demo/views?sort=position" -H "Authorization: Bearer $TOKEN"
import { ApiError } from '@annals/client';
import { demoClient } from './annals.ts';

const annals = demoClient('changelog.changelog_manage');
const { views } = annals;

// A view that is there already is replaced.
await views.put('example-prices', { name: 'Price changes', q: 'entity:product path:price', range: 'P90D' });
const { id: other } = await views.create({ name: 'Everything', q: '', range: 'all' });

// The service says where a query is wrong.
await views.create({ name: 'Wrong', q: 'entity:product price:3' }).catch((error: unknown) => {
  console.log(error instanceof ApiError ? error.details : error);
});

const view = await views.get('example-prices');
const from = new Date(Date.now() - 90 * 86_400_000).toISOString();
const { totalElements } = await annals.history.list({ q: `${view.q} occurredAt:>="${from}"` });
console.log(`${view.name}: ${totalElements} changes in 90 days`);

// The smallest position stands first. A write with an old version is refused.
await views.put(view.id, { ...view, position: 0 });
await views.put(view.id, { ...view, position: 9 }).catch((error: unknown) => console.log(String(error)));
for await (const { id, name, position } of views.list({ sort: 'position' })) console.log(position, id, name);

for (const id of [view.id, other]) await views.delete(id);
