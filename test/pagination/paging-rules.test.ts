import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testPagingRules } from '../support/oracle/paging-rules.ts';
import { aiListings, instancesOfThing, readListed, storeListed } from '../support/server/listings.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

// One function makes the routes of all lists. Each rule is tried on the list with the most columns of its own and on
// one other.
const isTried = ({ name }: { name: string }) => name === 'jobs';

describe.each([instancesOfThing, ...aiListings.filter(isTried)])('$name', (listed) => testPagingRules(listed));

describe('other lists', () => {
  const tenant = 'acme';
  let server: TestServer;
  let token: string;

  beforeAll(async () => {
    server = await startTestServer();
    token = await server.token(tenant);
  });

  afterAll(() => server.close());

  test.each(aiListings.filter((listed) => !isTried(listed)))(
    '$name: pages have 60 items by default, and wrong pages, sorts and cursors are 400',
    async (listed) => {
      const ids = Array.from({ length: 61 }, (_none, index) => `id-${String(index).padStart(2, '0')}`);
      await storeListed(
        server,
        listed,
        tenant,
        ids.map((id) => ({ id, content: { members: {} } })),
      );
      for (const by of ['list', 'search'] as const) {
        const read = (paging: Record<string, string>, headers: Record<string, string> = {}) =>
          readListed(server, listed, { tenant, token, by }, paging, headers);
        const first = await read({}, { 'X-Total-Count': 'true' });
        expect(first).toMatchObject({ ids: ids.slice(0, 60), total: '61', prev: null });
        expect(await read({ next: first.next ?? '', pageNumber: 'x' })).toMatchObject({ status: 200, ids: ['id-60'] });
        for (const wrong of [{ pageNumber: '0' }, { pageSize: '501' }, { sort: 'n:UP' }, { next: 'a', prev: 'a' }])
          expect(await read(wrong as Record<string, string>)).toMatchObject({
            status: 400,
            body: { type: 'validation_violation' },
          });
      }
    },
  );
});
