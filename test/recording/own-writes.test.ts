import { expect, test } from 'vitest';
import { holdTenant } from '../../src/history/retention/hold.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const scope = 'configuration.configuration_manage changelog.changelog_manage';

interface Item {
  entity: string;
  entityId: string;
  actor: string;
  actorId?: string;
  correlationId?: string;
}

async function itemsOf(token: string): Promise<Item[]> {
  const answer = await server.call('/changelog/acme/changelogs', { token });
  return ((await answer.json()) as { items: Item[] }).items;
}

test("what a request writes has its client's id and the request's id, whatever the client sends", async () => {
  const client = await server.createClient('acme', { scope, name: 'Shop' });
  const token = await server.tokenOf(client);
  const write = async (headers: Record<string, string>, ...keys: string[]) => {
    const json = keys.map((key) => ({ key, value: key }));
    const answer = await server.call('/configuration/acme/configurations', { token, json, headers });
    expect(answer.status).toBe(201);
    return answer.headers.get('x-request-id');
  };
  await write({ 'x-request-id': 'req-9' }, 'a', 'b');
  const made = await write({ 'x-request-id': 'no safe id' }, 'c');
  const by = { actor: 'Shop', actorId: client.clientId };
  const items = (await itemsOf(token)).map(({ entityId, actor, actorId, correlationId }) => [
    entityId,
    { actor, actorId, correlationId },
  ]);
  expect(Object.fromEntries(items)).toEqual({
    a: { ...by, correlationId: 'req-9' },
    b: { ...by, correlationId: 'req-9' },
    c: { ...by, correlationId: made },
  });
  expect(made).toMatch(/^[0-9a-f-]{36}$/);
});

test('what a command writes has neither', async () => {
  await holdTenant(server.database.db, 'acme', 'audit', Date.now());
  const [hold] = await itemsOf(await server.token('acme', { scope }));
  expect(hold).toMatchObject({ entity: 'annals-hold', actor: 'operator' });
  expect(hold).not.toHaveProperty('actorId');
  expect(hold).not.toHaveProperty('correlationId');
});
