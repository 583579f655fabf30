import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { aiListings, readListed, storeListed } from '../support/server/listings.ts';
import { startTestServer } from '../support/server/server.ts';

const tenant = 'acme';
const message = 'The cursor is not valid for this request.';

const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant);
const documents = ['a', 'b', 'c'].map((id) => ({ id, content: { members: {} } }));
for (const listed of aiListings) await storeListed(server, listed, tenant, documents);

test('a cursor of one AI listing or search serves no other', async () => {
  const operations = aiListings.flatMap((listed) => (['list', 'search'] as const).map((by) => ({ listed, by })));
  for (const from of operations) {
    const { next } = await readListed(server, from.listed, { tenant, token, by: from.by }, { pageSize: 1 });
    for (const to of operations) {
      const page = await readListed(server, to.listed, { tenant, token, by: to.by }, { pageSize: 1, next: next ?? '' });
      if (to === from) expect(page.ids).toEqual(['b']);
      else expect(page.body).toMatchObject({ status: 400, message });
    }
  }
});
