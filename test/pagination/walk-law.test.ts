import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDocumentQuery } from '../../src/query/parse.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { arbitraryDocuments, arbitraryFilter, arbitrarySort } from '../support/oracle/document-arbitrary.ts';
import { compareDocuments, finds } from '../support/oracle/document-evaluator.ts';
import { checkLaw, someOf } from '../support/oracle/law.ts';
import type { PageSeen } from '../support/server/instances.ts';
import {
  type Asked,
  aiListings,
  instancesOfThing,
  prepareListed,
  readListed,
  storeListed,
} from '../support/server/listings.ts';
import { startTestServer } from '../support/server/server.ts';

const walks = 12;
const walksOfCollection = 6;
const tenant = 'alpha';
const listings = [instancesOfThing, ...aiListings];

const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant);
for (const listed of listings) await prepareListed(server, listed, tenant, token);

test.each(listings)(
  '$name: forward is the sorted list, back again is its mirror, and offset pages joined are it',
  async (listed) => {
    const ofThese = listed === instancesOfThing ? walks : Math.ceil(walks / 3);
    const scenario = fc.record({
      documents: arbitraryDocuments,
      walked: someOf(
        fc.record({
          sort: fc.option(arbitrarySort, { nil: { text: undefined, fields: [] } }),
          q: arbitraryFilter,
          by: fc.constantFrom<Asked['by']>('list', 'search'),
          sizes: fc.array(fc.constantFrom(1, 2, 3, 5, 8, 13, 60), { minLength: 1, maxLength: 5 }),
        }),
        walksOfCollection,
      ),
    });
    await checkLaw(scenario, { runs: Math.ceil(ofThese / walksOfCollection) }, async ({ documents, walked }) => {
      await storeListed(server, listed, tenant, documents);
      for (const { sort, q, by, sizes } of walked) {
        const query = parseDocumentQuery(q);
        const expected = documents
          .filter((document) => finds(query, document))
          .sort((one, other) => compareDocuments(sort.fields, one, other))
          .map((document) => document.id);
        const inputs = { sort: sort.text, q, sizes };
        const parameters: Record<string, string> = sort.text === undefined ? {} : { sort: sort.text };
        const read = (paging: Record<string, string | number>, headers?: Record<string, string>) =>
          readListed(server, listed, { tenant, token, by, q }, { ...parameters, ...paging }, headers);
        expect({ ...inputs, ...(await walk(read, sizes)) }).toEqual({
          ...inputs,
          forward: expected,
          back: expected,
          wrong: [],
        });
        expect({ ...inputs, ids: await turnPages(read, sizes[0] ?? 1, expected.length) }).toEqual({
          ...inputs,
          ids: expected,
        });
      }
    });
  },
);

type Read = (paging: Record<string, string | number>, headers?: Record<string, string>) => Promise<PageSeen>;

/** Forward to the end and back to the beginning, with page sizes that change on the way. */
async function walk(read: Read, sizes: readonly number[]) {
  const wrong: unknown[] = [];
  let step = 0;
  const nextSize = () => sizes[step++ % sizes.length] ?? 1;
  const check = (seen: PageSeen, limit: number, before: boolean, after: boolean) => {
    const full = seen.ids.length === limit || !before || !after;
    if (seen.status !== 200 || !full || seen.ids.length > limit) wrong.push({ ...seen, limit });
    if ((seen.prev !== null) !== before || (seen.next !== null) !== after) wrong.push({ ...seen, before, after });
  };

  let size = nextSize();
  let page = await read({ pageSize: size });
  const forward = [...page.ids];
  check(page, size, false, page.next !== null);
  while (page.next !== null) {
    size = nextSize();
    page = await read({ pageSize: size, next: page.next });
    forward.push(...page.ids);
    check(page, size, true, page.next !== null);
  }
  const back = [...page.ids];
  while (page.prev !== null) {
    size = nextSize();
    page = await read({ pageSize: size, prev: page.prev });
    back.unshift(...page.ids);
    check(page, size, page.prev !== null, true);
  }
  return { forward, back, wrong };
}

async function turnPages(read: Read, size: number, total: number): Promise<string[]> {
  const ids: string[] = [];
  for (let pageNumber = 1; ; pageNumber += 1) {
    const page = await read({ pageNumber, pageSize: size }, { 'X-Total-Count': 'true' });
    expect(page.total).toBe(String(total));
    expect(page.next !== null).toBe(pageNumber * size < total);
    expect(page.prev !== null).toBe(pageNumber > 1 && total > 0);
    if (page.ids.length === 0) return ids;
    ids.push(...page.ids);
  }
}
