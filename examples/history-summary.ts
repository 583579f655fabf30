// Counts changes: GET /changelog/{tenant}/histogram and /facets; and how they come in: /recorders. Run it with, for instance:
// node examples/history-summary.ts 'entity:order'
// With curl: curl -sG "$ANNALS_URL/changelog/demo/histogram" -H "Authorization: Bearer $TOKEN" -d buckets=31 --data-urlencode 'q=entity:order'
import { demoClient } from './annals.ts';

const annals = demoClient('changelog.changelog_read changelog.changelog_manage');
const [q = ''] = process.argv.slice(2);

const { interval, buckets, totalElements } = await annals.history.histogram({ q, buckets: 31 });
console.log(`${totalElements} changes; a line is ${interval.count} ${interval.unit}`);
for (const { at, count, create, delete: deleted } of buckets) {
  console.log(`${at} ${count}, of which ${create} made and ${deleted} deleted something`);
}

const { values, others } = await annals.history.facets({ q, field: 'actor', size: 5 });
for (const { value, count } of values) console.log(`${value}: ${count}`);
console.log(`all others: ${others}`);

const people = await annals.history.facets({ q, field: 'actorId', size: 5 });
for (const { value, name, count } of people.values) console.log(`${name} (${value}): ${count}`);
for await (const { actorId, names } of annals.actors.list({ prefix: 'siob' }))
  console.log(actorId, names.map(({ name }) => name).join(', before: '));

const fields = await annals.history.facets({ q: 'entity:product', field: 'path', size: 5 });
for (const { value, count } of fields.values) console.log(`${value} of products: ${count}`);

const { recorders } = await annals.history.recorders();
for (const { way, by = '', lastRecordedAt } of recorders)
  console.log(`${way} ${by} recorded last at ${lastRecordedAt}`);
