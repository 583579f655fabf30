// Makes a type with a schema, writes instances in every way there is, and walks all of them. Run it with:
// node examples/custom-entities.ts
// With curl: curl -sG "$ANNALS_URL/schema/demo/custom-entities/EXAMPLE_SHELF/instances" -H "Authorization: Bearer $TOKEN" --data-urlencode 'q=slots:>=10'
import { ApiError } from '@annals/client';
import { JsonNumber, stringifyJson } from '@annals/client/json';
import { and, field, glob } from '@annals/client/query';
import { demoClient } from './annals.ts';

const annals = demoClient('schema.schema_manage schema.custominstance_manage');

// Types.
await annals.customEntities.put('EXAMPLE_SHELF', {
  name: { en: 'Shelf', de: 'Regal' },
  jsonSchema: { type: 'object', properties: { slots: { type: 'integer', minimum: 1 } }, required: ['slots'] },
});
await annals.customEntities.create({ id: 'EXAMPLE_LABEL', name: { en: 'Shelf label' } });
const types = await annals.customEntities.list({ q: field('id').is(glob('EXAMPLE*')), sort: '_id:DESC' });
console.log(types.items.map(({ id }) => id));

// Instances. The service checks them with the schema, and says which field is wrong.
const shelves = annals.instances('EXAMPLE_SHELF');
await shelves.create({ name: 'No slots' }).catch((error: unknown) => {
  console.log(error instanceof ApiError ? error.details : error);
});
await shelves.create({ id: 'a-1', name: { en: 'Aisle A' }, slots: 12, price: new JsonNumber('1.10') });
for (const slots of [3, 40, 7]) await shelves.put(`b-${slots}`, { name: { en: 'Aisle B' }, slots });

// A write with an old version is refused.
const shelf = await shelves.get('a-1');
await shelves.put('a-1', { ...shelf, slots: 13 });
await shelves.put('a-1', { ...shelf, slots: 14 }).catch((error: unknown) => console.log(String(error)));
await shelves.patch('a-1', [
  { op: 'test', path: '/slots', value: 13 },
  { op: 'replace', path: '/slots', value: 15 },
  { op: 'replace', path: '/price', value: new JsonNumber('1.20') },
]);

// All instances, page after page, and one with every digit.
for await (const { id, slots } of shelves.list({ sort: 'slots:DESC', pageSize: 2 })) console.log(id, slots);
const wide = await shelves.list({
  q: and(field('slots').atLeast(10), field('name.en').is(glob('Aisle*'))),
  total: true,
});
console.log(`${wide.total} shelves have ten slots or more`);
console.log(stringifyJson(await annals.exact.instances('EXAMPLE_SHELF').get('a-1')));

for (const id of ['a-1', 'b-3', 'b-40', 'b-7']) await shelves.delete(id);
for (const type of ['EXAMPLE_SHELF', 'EXAMPLE_LABEL']) await annals.customEntities.delete(type);
