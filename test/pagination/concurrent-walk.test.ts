import { setImmediate as turn } from 'node:timers/promises';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { checkLaw } from '../support/oracle/law.ts';
import { type Listing, readInstances, storeInstances } from '../support/server/instances.ts';
import { startTestServer } from '../support/server/server.ts';

const walks = 2;
const place = { tenant: 'acme', type: 'THING' };
const path = '/schema/acme/custom-entities/THING/instances';

const server = closeAfterAll(await startTestServer());
const token = await server.token(place.tenant);
await server.call('/schema/acme/custom-entities', { token, json: { id: 'THING', name: { en: 'Thing' } } });

test('while others insert, update and delete, what was there all along and untouched is seen exactly once', async () => {
  let writes = 0;
  const scenario = fc.record({
    values: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 60, maxLength: 60 }),
    sort: fc.constantFrom('n', 'n:DESC', 'm:DESC,n', 'n,m:DESC', '_id', '_id:DESC', 'nothing'),
    by: fc.constantFrom<Listing['by']>('list', 'search'),
    sizes: fc.array(fc.constantFrom(1, 2, 3, 5, 8), { minLength: 1, maxLength: 4 }),
    back: fc.boolean(),
    random: fc.noShrink(fc.infiniteStream(fc.nat())),
  });
  await checkLaw(scenario, { runs: walks }, async ({ values, sort, by, sizes, back, random }) => {
    // Even ones stay as they are; odd ones are at the writers' mercy.
    await storeInstances(
      server,
      place,
      values.map((value, index) => ({
        id: `id-${String(index).padStart(3, '0')}`,
        content: { members: { n: { number: String(value) }, m: `m${index % 3}`, stays: index % 2 === 0 } },
      })),
    );
    const staying = values.flatMap((_value, index) =>
      index % 2 === 0 ? [`id-${String(index).padStart(3, '0')}`] : [],
    );
    let walking = true;
    const draw = () => Number(random.next().value ?? 0);
    const write = async () => {
      while (walking) {
        const id = draw() % 2 === 0 ? `id-${String((draw() % 30) * 2 + 1).padStart(3, '0')}` : `new-${draw() % 20}`;
        const deletes = draw() % 3 === 0;
        const json = { n: draw() % 10, m: `m${draw() % 3}`, stays: false };
        const response = deletes
          ? await server.call(`${path}/${id}`, { token, method: 'DELETE' })
          : await server.call(`${path}/${id}`, { token, method: 'PUT', json });
        if (![201, 204, 404].includes(response.status)) throw new Error(await response.text());
        await response.arrayBuffer();
        writes += 1;
        await turn();
      }
    };
    const writers = [write(), write(), write()];
    const seen: string[] = [];
    try {
      const parameters = { sort };
      let step = 0;
      const read = (paging: Record<string, string | number>) =>
        readInstances(
          server,
          { ...place, token, by },
          { ...parameters, pageSize: sizes[step++ % sizes.length] ?? 1, ...paging },
        );
      let page = back ? await read({ pageNumber: 1_000_000 }) : await read({});
      for (;;) {
        expect(page.status).toBe(200);
        seen.push(...page.ids);
        const cursor = back ? page.prev : page.next;
        if (cursor === null) break;
        page = await read({ [back ? 'prev' : 'next']: cursor });
      }
    } finally {
      walking = false;
      await Promise.all(writers);
    }
    expect(seen.filter((id) => staying.includes(id)).sort()).toEqual(staying);
  });
  console.log(`${writes} writes meanwhile`);
});
