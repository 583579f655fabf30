import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { sealedAgentKeys } from '../../../src/desk/agents/secrets.ts';
import { openHeaders, sealedToolHeaders } from '../../../src/desk/mcp/headers.ts';
import { resealColumn } from '../../../src/postgres/reseal.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic, putAgent } from '../../support/server/agents.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const tenant = 'acme';
const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({ secretKeys: [oldKey], environment: { OPENAI_BASE_URL: vendor.baseUrl } }),
);
const token = await server.token(tenant);

const secretKeysOf = (...secretKeys: Uint8Array[]) =>
  startTestServer({ secretKeys, environment: { OPENAI_BASE_URL: vendor.baseUrl }, database: server.database });

const chat = async (on: TestServer, agentId: string) => {
  const as = await on.token(tenant);
  return await callAgentic(on, { tenant, token: as, path: '/chat' }, { agentId, message: 'x' });
};

test('keys of agents are resealed with the rest, and open with the new key alone', async () => {
  await putAgent(server, { tenant, token, id: 'desk' });
  const sealer = createSealer([newKey, oldKey]);
  const counts = await resealColumn(server.database.db, sealer, sealedAgentKeys);
  expect(counts).toEqual({ resealed: 1, current: 0, unreadable: 0 });
  const rotated = await secretKeysOf(newKey, oldKey);
  expect((await chat(rotated, 'desk')).status).toBe(200);
  expect(vendor.requests.at(-1)?.headers.authorization).toBe(`Bearer ${agentKey}`);
  await rotated.close();
});

test('headers of servers of tools are resealed too, and re-entered where no key opens them', async () => {
  const tools = [{ name: 'search', sha256: 'a'.repeat(64) }];
  const mcpServers = [
    { name: 'docs', url: 'https://tools.invalid/mcp', headers: { Authorization: 'Bearer of-docs' }, tools },
  ];
  await putAgent(server, { tenant, token, id: 'served' }, { mcpServers });
  const without = await secretKeysOf(newKey);
  const llmConfig = { provider: 'openai', model: 'm', apiKey: agentKey };
  const body = {
    llmConfig,
    name: { en: 's' },
    mcpServers: [{ ...mcpServers[0], headers: { Authorization: '********' } }],
  };
  const put = { tenant, token: await without.token(tenant), path: '/agents/served', method: 'PUT' };
  expect(await (await callAgentic(without, put, body)).json()).toMatchObject({
    details: [{ message: 'can no longer be decrypted and must be re-entered' }],
  });
  await without.close();
  const sealer = createSealer([newKey, oldKey]);
  expect(await resealColumn(server.database.db, sealer, sealedToolHeaders)).toEqual({
    resealed: 1,
    current: 0,
    unreadable: 0,
  });
  const { rows } = await server.database.pool.query("select sealed_headers from agent where id = 'served'");
  const opened = openHeaders(createSealer([newKey]), tenant, 'served', rows[0].sealed_headers);
  expect(opened).toEqual({ docs: { Authorization: 'Bearer of-docs' } });
});

test('a key that opens with none of the keys is as good as missing, and says so', async () => {
  await putAgent(server, { tenant, token, id: 'lost' });
  const without = await secretKeysOf(newKey);
  const calls = vendor.requests.length;
  const response = await chat(without, 'lost');
  expect([response.status, await response.json()]).toMatchObject([400, { details: [{ field: 'llmConfig.apiKey' }] }]);
  expect(vendor.requests.length).toBe(calls);
  const { rows } = await server.database.pool.query("select failures from agent where id = 'lost'");
  expect(rows).toEqual([{ failures: 1 }]);
  await without.close();
});

test('a sealed key that is moved to another agent does not open', async () => {
  await putAgent(server, { tenant, token, id: 'thief' });
  await putAgent(server, { tenant, token, id: 'owner' });
  const { rows } = await server.database.pool.query("select sealed_key from agent where id = 'owner'");
  await server.database.pool.query("update agent set sealed_key = $1 where id = 'thief'", [rows[0].sealed_key]);
  expect((await chat(server, 'owner')).status).toBe(200);
  expect((await chat(server, 'thief')).status).toBe(400);
});
