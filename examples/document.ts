// Asks for a document as it was: GET /changelog/{tenant}/documents. Run it with, for instance:
// node examples/document.ts 'entity:product'
// With curl: curl -sG "$ANNALS_URL/changelog/demo/documents" -H "Authorization: Bearer $TOKEN" -d entity=product -d entityId=… -d changes=1
import { demoClient } from './annals.ts';

const annals = demoClient('changelog.changelog_read');
const [q = 'entity:order type:update'] = process.argv.slice(2);

// Names for a query, as one would complete them: GET /changelog/{tenant}/names.
const { values } = await annals.history.names({ field: 'entity', prefix: 'O' });
console.log('entities that begin with o:', values);

// Documents by a part of their name, and those that nobody has changed for a week.
const found = await annals.history.names({ field: 'document', prefix: 'alba' });
for (const { entity, entityId, name, at } of found.values) console.log(`${entity} ${entityId}, ${name}, changed ${at}`);
const weekAgo = new Date(Date.now() - 7 * 86_400_000);
const untouched = await annals.history.names({ field: 'document', entity: 'product', changedBefore: weekAgo });
console.log('products without a change for a week:', untouched.values.length);

// The newest change, and the change alone by its address: GET /changelog/{tenant}/entries.
const { items } = await annals.history.list({ q, size: 1, ref: true, valueLimit: 1_000 });
const [newest] = items;
if (newest?.ref !== undefined) {
  const { entity, entityId, at } = await annals.history.entry(newest.ref);
  const now = await annals.history.document({ entity, entityId, at });
  const first = await annals.history.document({ entity, entityId, changes: 1 });
  console.log(`${entity} ${entityId} had ${now.changes} changes until ${at}; complete: ${now.complete}`);
  console.log('at first:', first.document);
  console.log('then:', now.document);
}
