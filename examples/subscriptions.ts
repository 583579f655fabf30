// Makes a webhook for the changes of prices, sends it a sample, looks at its attempts, pauses it, and deletes it. Run it with:
// node examples/subscriptions.ts
// With curl: curl -s "$ANNALS_URL/changelog/demo/subscriptions" -H "Authorization: Bearer $TOKEN"
import { ApiError } from '@annals/client';
import { demoClient } from './annals.ts';

const { subscriptions } = demoClient('changelog.changelog_read changelog.subscription_manage');
const url = process.argv[2] ?? 'https://receiver.invalid/changes';

// The secret is shown this once: the receiver checks signatures with it (examples/webhook-receiver).
const { id, secret } = await subscriptions.create({
  name: 'Prices to the ERP',
  q: 'entity:product path:price',
  hide: ['card.*'],
  target: { type: 'webhook', url, headers: { 'X-Shop': 'demo' } },
});
console.log(id, secret?.slice(0, 6));

const { items } = await subscriptions.preview(id, { limit: 5 });
console.log(`${items.length} changes of the last day would have been sent`);

const { outcome, error } = await subscriptions.test(id);
console.log('the sample was', outcome, error ?? '');
for await (const attempt of subscriptions.attempts(id, { sort: '_id:DESC' })) console.log(attempt.at, attempt.outcome);

// Values of headers come back masked. A mask that is sent back stands for the value that is stored.
const stored = await subscriptions.get(id);
await subscriptions.replace(id, { ...stored, name: 'Prices' });
await subscriptions.replace(id, stored).catch((reason: unknown) => console.log(reason instanceof ApiError));

await subscriptions.pause(id);
await subscriptions.resume(id);
await subscriptions.replay(id, { from: new Date(Date.now() - 3_600_000).toISOString() });
await subscriptions.replay(id, { parked: true });
await subscriptions.rotate(id);
await subscriptions.deleteParked(id);
for await (const { name, state, delivered } of subscriptions.list({ q: 'state:active' }))
  console.log(name, state, delivered);
await subscriptions.delete(id);
