import { describe, expect, test } from 'vitest';
import { createClient, listClients, revokeClient } from '../../../src/access/oauth/clients.ts';
import { scopes } from '../../../src/http/scopes.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const database = closeAfterAll(await createTestDatabase());
for (const tenant of ['acme', 'other', 'empty']) await createTenant(database.db, tenant);

const scope = 'changelog.changelog_read';

test('a client has an id with its tenant, a secret of 32 bytes, and its id as the default name', async () => {
  const client = await createClient(database.db, { tenant: 'acme', scope });
  expect(client).toEqual({
    clientId: expect.stringMatching(/^acme\.[0-9a-f]{20}$/),
    clientSecret: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    tenant: 'acme',
    scope,
    name: client.clientId,
  });
});

test('names may repeat', async () => {
  const [first, second] = [1, 2].map(() => createClient(database.db, { tenant: 'other', scope, name: 'Jane Doe' }));
  expect((await first)?.clientId).not.toBe((await second)?.clientId);
});

test('the secret is stored only hashed', async () => {
  const { clientId, clientSecret } = await createClient(database.db, { tenant: 'acme', scope });
  const { rows } = await database.pool.query('select c::text as row from oauth_client c where client_id = $1', [
    clientId,
  ]);
  expect(rows[0].row).not.toContain(clientSecret);
  expect(rows[0].row).not.toContain(Buffer.from(clientSecret).toString('hex'));
  expect(rows[0].row).not.toContain(Buffer.from(clientSecret, 'base64url').toString('hex'));
});

describe('scopes', () => {
  test('are those of the contract, in the order given, each once', async () => {
    const { scope: all } = await createClient(database.db, { tenant: 'acme', scope: scopes.join(' ') });
    expect(all).toBe(scopes.join(' '));
    const twice = await createClient(database.db, { tenant: 'acme', scope: ` ${scope}  ai.agent_read ${scope} ` });
    expect(twice.scope).toBe(`${scope} ai.agent_read`);
  });

  test.each([
    '',
    ' ',
    'nonsense',
    `${scope} nonsense`,
    `${scope},ai.agent_read`,
    `${scope}\tai.agent_read`,
    'tenant=acme',
  ])('%j is refused', async (refused) => {
    await expect(createClient(database.db, { tenant: 'acme', scope: refused })).rejects.toMatchObject({
      type: 'validation_violation',
      details: [{ field: 'scope' }],
    });
  });
});

describe('names', () => {
  test.each(['Jane Doe', 'x', 'System', '李雷 🙂', "O'Brien <a@b>", 'é'.repeat(200), '🙂'.repeat(200)])(
    '%j is a name',
    async (name) => {
      expect((await createClient(database.db, { tenant: 'acme', scope, name })).name).toBe(name);
    },
  );

  test.each([
    'system',
    'external',
    'unknown',
    '',
    '  ',
    'a\nb',
    'a\u0000b',
    '\u007f',
    '\u0085',
    'x'.repeat(201),
    '🙂'.repeat(201),
    '\ud800',
    'a\udc00b',
  ])('%j is refused', async (name) => {
    await expect(createClient(database.db, { tenant: 'acme', scope, name })).rejects.toMatchObject({
      type: 'validation_violation',
      details: [{ field: 'name' }],
    });
  });
});

test('a client of an unknown tenant is refused', async () => {
  await expect(createClient(database.db, { tenant: 'nobody', scope })).rejects.toMatchObject({
    type: 'resource_not_found',
    message: 'There is no tenant nobody; create it with: annals tenant create nobody',
  });
});

test('the list has the clients of the tenant alone, with dates and without secrets', async () => {
  expect(await listClients(database.db, 'empty')).toEqual([]);
  const mine = await createClient(database.db, { tenant: 'empty', scope, name: 'mine' });
  await revokeClient(database.db, mine.clientId);
  expect(await listClients(database.db, 'empty')).toEqual([
    {
      clientId: mine.clientId,
      tenant: 'empty',
      scope,
      name: 'mine',
      state: 'revoked',
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      expiresAt: null,
      revokedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      usedAt: null,
    },
  ]);
});

test('revoking again succeeds and keeps the first date; an unknown id is false', async () => {
  const { clientId } = await createClient(database.db, { tenant: 'acme', scope });
  expect(await revokeClient(database.db, clientId)).toBe(true);
  const date = async () =>
    (await listClients(database.db, 'acme')).find((client) => client.clientId === clientId)?.revokedAt;
  const first = await date();
  expect(await revokeClient(database.db, clientId)).toBe(true);
  expect(await date()).toBe(first);
  for (const unknown of [`acme.${'0'.repeat(20)}`, 'nonsense', '', `${clientId}' or true --`, 'acme.\u0000']) {
    expect(await revokeClient(database.db, unknown)).toBe(false);
  }
});
