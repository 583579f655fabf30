import { afterAll, expect, test } from 'vitest';
import { callAgentic, eventsOf, putAgent } from '../../support/server/agents.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { type LinkFault, startDatabaseProxy } from '../../support/server/database-proxy.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const tenant = 'acme';

const vendor = await startVendor();
const database = await createTestDatabase();
const proxy = await startDatabaseProxy(database.url);
const server = await startTestServer({
  environment: { OPENAI_BASE_URL: vendor.baseUrl },
  database: { ...database, url: proxy.url },
});
const token = await server.token(tenant);
await putAgent(server, { tenant, token, id: 'desk' });

afterAll(async () => {
  proxy.mend();
  await server.close();
  await proxy.close();
  await database.drop();
  await vendor.close();
});

/** How a streamed chat ended: its status or last event; undefined where it closed without a final event. */
async function chatEnds(): Promise<string | undefined> {
  const body = { agentId: 'desk', message: 'Hello' };
  const response = await callAgentic(server, { tenant, token, path: '/chat-stream' }, body);
  const text = await response.text();
  if (response.status !== 200) return `${response.status} ${JSON.parse(text).type}`;
  const last = eventsOf(text).at(-1);
  return last?.event === 'error' ? `error ${last.data.type}` : last?.event;
}

test.each<LinkFault>(['cut', 'away'])(
  'a streamed chat whose database is %s at any statement ends with an honest event',
  async (fault) => {
    const ends = new Set<string | undefined>();
    let statements = 0;
    // From here on its connections are there, and its client is known.
    expect(await chatEnds()).toBe('done');
    // An absence takes longer to mend than a cut: every third statement will do.
    for (let step = 0; ; step += fault === 'cut' ? 1 : 3) {
      proxy.failAfter(step, fault);
      const end = await chatEnds();
      statements = proxy.sent;
      proxy.mend();
      // The fault comes with the statement after the last one.
      if (end === 'done' && statements <= step) break;
      // A statement that is not the chat's own may be cut as well.
      if (end !== 'done') ends.add(end);
      await expect.poll(chatEnds, { timeout: 30_000 }).toBe('done');
    }
    expect(statements).toBeGreaterThan(8);
    expect([...ends].sort()).toEqual(['503 service_unavailable', 'error service_unavailable']);
    expect(server.logLines.filter((line) => line.includes('already sent'))).toEqual([]);
  },
);
