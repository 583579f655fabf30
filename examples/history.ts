// Asks for change history: GET /changelog/{tenant}/changelogs. Run it with, for instance:
// node examples/history.ts 'entity:product type:update'
// With curl: curl -sG "$ANNALS_URL/changelog/demo/changelogs" -H "Authorization: Bearer $TOKEN" -d size=5 --data-urlencode 'q=entity:order'
import type { ChangeEntry } from '@annals/client';
import { actor, and, changeType, entity, glob } from '@annals/client/query';
import { demoClient } from './annals.ts';

const annals = demoClient('changelog.changelog_read');
const [q = and(entity('order'), actor('Jane Doe'))] = process.argv.slice(2);

// Awaited, a list is a page.
const { items, totalElements, totalPages } = await annals.history.list({ q, size: 5 });
console.log(`${totalElements} changes on ${totalPages} pages; the latest:`);
for (const entry of items) show(entry);

// Iterated, it is everything that matches.
if (process.argv.length === 2) {
  const people = new Set<string>();
  const made = and(changeType('create'), entity('customer', 'company'), actor(glob('J*')));
  for await (const entry of annals.history.list({ q: made, size: 100 })) people.add(entry.actor);
  console.log('customers and companies were made by', [...people]);
}

function show({ at, actor: who, type, entity: kind, entityId, paths }: ChangeEntry): void {
  console.log(`${at} ${who}: ${type} ${kind} ${entityId} (${Object.keys(paths).join(', ')})`);
}
