// Makes a type with a schema, writes an instance in every way there is, and walks all instances page by page.
// Run it with: node examples/custom-entities.ts
import { getToken, setting } from './token.ts';

const token = await getToken('schema.schema_manage schema.custominstance_manage');
const base = `${setting('ANNALS_URL')}/schema/demo/custom-entities`;

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  console.log(`${method} ${path.slice(0, 60)}: ${response.status} ${text.slice(0, 100)}`);
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
}

// Types: PUT, POST, GET (one and all), DELETE at the end.
await call('PUT', '/SHELF', {
  name: { en: 'Shelf', de: 'Regal' },
  jsonSchema: { type: 'object', properties: { slots: { type: 'integer', minimum: 1 } }, required: ['slots'] },
});
await call('POST', '', { id: 'SHELF_LABEL', name: { en: 'Shelf label' } });
await call('GET', '/SHELF');
await call('GET', '?q=id:SHELF*&sort=_id:DESC');

// Instances: POST, PUT, GET, PATCH, DELETE.
await call('POST', '/SHELF/instances', { name: 'No slots' });
await call('POST', '/SHELF/instances', { id: 'a-1', name: { en: 'Aisle A' }, slots: 12 });
for (const slots of [3, 40, 7]) await call('PUT', `/SHELF/instances/b-${slots}`, { name: { en: 'Aisle B' }, slots });
const { body: shelf } = await call('GET', '/SHELF/instances/a-1');
await call('PUT', '/SHELF/instances/a-1', { ...shelf, slots: 13 });
await call('PUT', '/SHELF/instances/a-1', { ...shelf, slots: 14 });
await call('PATCH', '/SHELF/instances/a-1', [
  { op: 'test', path: '/slots', value: 13 },
  { op: 'replace', path: '/slots', value: 15 },
]);

// Pages, forward until nothing follows.
let cursor: string | null = null;
do {
  const next: string = cursor === null ? '' : `&next=${cursor}`;
  const page = await call('GET', `/SHELF/instances?pageSize=2&sort=slots:DESC&fields=slots${next}`);
  cursor = page.headers.get('x-next-cursor');
} while (cursor !== null);
const found = await call(
  'POST',
  '/SHELF/instances/search?sort=slots',
  { q: 'slots:>=10 name.en:Aisle*' },
  { 'x-total-count': 'true' },
);
console.log(`${found.headers.get('x-total-count')} shelves have ten slots or more`);

for (const id of ['a-1', 'b-3', 'b-40', 'b-7']) await call('DELETE', `/SHELF/instances/${id}`);
for (const type of ['SHELF', 'SHELF_LABEL']) await call('DELETE', `/${type}`);
