import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type NewClient, revokeClient } from '../../../src/access/oauth/clients.ts';
import { type ExportInput, exportDocument } from '../../../src/desk/jobs/job.ts';
import { insertJob } from '../../../src/desk/jobs/job-store.ts';
import type { QueuedChat } from '../../../src/desk/queued-chat.ts';
import { isScope } from '../../../src/http/scopes.ts';
import type { DatabaseTransaction } from '../../../src/postgres/database.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callAgentic, putAgent } from '../../support/server/agents.ts';
import { endOfJob } from '../../support/server/jobs.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const tenant = 'acme';
const scope = 'ai.agentexecution_manage changelog.changelog_read';

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl } }));
const token = await server.token(tenant);

beforeEach(async () => {
  vendor.requests.length = 0;
  vendor.behave({ kind: 'answer' });
  await putAgent(server, { tenant, token, id: 'desk' }, { nativeTools: ['change-history'], enabled: true });
});

const revoked = 'The client of this chat has been revoked.';

describe('when, before a queued chat runs,', () => {
  test.each([
    ['its client is revoked', setClient({ revoked_at: new Date() }), 'failure', 'insufficient_permissions', revoked],
    [
      'its client loses the scope for chats',
      setClient({ scopes: ['changelog.changelog_read', 'ai.agent_manage'] }),
      'failure',
      'insufficient_permissions',
      'The client of this chat may not chat with agents any more.',
    ],
    ['its agent is disabled', setAgent(false), 'skipped', 'conflict_resource', 'The agent is disabled.'],
    ['its agent is deleted', setAgent(undefined), 'skipped', 'resource_not_found', 'There is no such agent.'],
  ])(
    '%s: the chat ends with the reason, and nothing is sent to a vendor',
    async (_what, happen, status, type, message) => {
      const client = await server.createClient(tenant, { scope });
      // In one transaction: no worker sees the job before it has happened.
      const id = await queue(client, happen);
      expect(await ended(id)).toMatchObject({ status, metadata: { error: { type, message } } });
      expect(vendor.requests).toEqual([]);
    },
  );

  test('its client loses the changelog scope: the chat runs without the tool', async () => {
    const client = await server.createClient(tenant, { scope });
    const before = await queue(client, async () => {});
    expect(await ended(before)).toMatchObject({ status: 'success' });
    expect(vendor.requests.at(-1)?.body.tools).toHaveLength(1);
    const id = await queue(client, setClient({ scopes: ['ai.agentexecution_manage'] }));
    expect(await ended(id)).toMatchObject({ status: 'success' });
    expect(vendor.requests).toHaveLength(2);
    expect(vendor.requests.at(-1)?.body.tools ?? []).toEqual([]);
  });
});

describe('an export that needs the right to read contexts', () => {
  const manager = 'changelog.changelog_manage';
  test.each([
    ['its client is revoked', 'context.ip:x', false, setClient({ revoked_at: new Date() })],
    ['its client loses the right', 'context.ip:x', false, setClient({ scopes: ['changelog.changelog_read'] })],
    ['its client loses the right', '', true, setClient({ scopes: ['changelog.changelog_read'] })],
  ])('ends as failed where, before it runs, %s (q %j, context %s)', async (_what, q, withContext, happen) => {
    const client = await server.createClient(tenant, { scope: manager });
    const input: ExportInput = { q, format: 'CSV', withContext, askedAt: Date.now() };
    const request = { ...input, requestId: randomUUID(), clientId: client.clientId };
    const document = exportDocument(randomUUID(), Date.now(), { ...request, usesContext: q !== '' });
    await inTransaction(server.context.db, async (transaction) => {
      await insertJob(transaction, tenant, { document, input });
      await happen(transaction, client);
    });
    const reader = await server.token(tenant, { scope: `${manager} ai.agent_read` });
    expect(await endOfJob((path) => server.call(path, { token: reader }), tenant, document.id)).toMatchObject({
      status: 'failure',
      metadata: {
        error: {
          type: 'insufficient_permissions',
          message: 'The client of this export may no longer read contexts: it needs changelog.changelog_manage.',
        },
      },
    });
  });
});

describe('a chat by job that has been taken up', () => {
  test('is not sent where its client is revoked while it waits for its session', async () => {
    const sessionId = randomUUID();
    const client = await server.createClient(tenant, { scope });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    onTestFinished(() => release());
    vendor.behave({ kind: 'answer', after: released });
    const earlier = callAgentic(
      server,
      { tenant, token, path: '/chat', headers: { 'session-id': sessionId } },
      { agentId: 'desk', message: 'first' },
    );
    await eventually(() => vendor.requests.length).toBe(1);
    const id = await queue(client, async () => {}, sessionId);
    const place = 'select from agent_turn where session_id = $1';
    await eventually(async () => (await server.database.pool.query(place, [sessionId])).rowCount).toBe(2);
    await revokeClient(server.context.db, client.clientId);
    release();
    expect((await earlier).status).toBe(200);
    expect(await ended(id)).toMatchObject({ status: 'failure', metadata: { error: { message: revoked } } });
    expect(vendor.requests).toHaveLength(1);
    const logs = await callAgentic(server, {
      tenant,
      token,
      path: `/logs/requests?q=sessionId:"${sessionId}"`,
      method: 'GET',
    });
    expect(await logs.text()).toContain(revoked);
  });

  test('is shown no more of the change history once its client is revoked', async () => {
    const client = await server.createClient(tenant, { scope });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    onTestFinished(() => release());
    vendor.behave(() => ({
      kind: 'answer',
      after: released,
      toolCall: { id: randomUUID(), name: 'change-history', input: { q: 'entity:agent' } },
    }));
    const id = await queue(client, async () => {});
    await eventually(() => vendor.requests.length).toBe(1);
    await revokeClient(server.context.db, client.clientId);
    release();
    expect(await ended(id)).toMatchObject({ status: 'failure', metadata: { error: { message: revoked } } });
    expect(vendor.requests).toHaveLength(1);
  });
});

type Happening = (transaction: DatabaseTransaction, client: NewClient) => Promise<unknown>;

function setClient(columns: { revoked_at?: Date; scopes?: string[] }): Happening {
  return async (transaction, { clientId }) =>
    await transaction.updateTable('oauth_client').set(columns).where('client_id', '=', clientId).execute();
}

/** Undefined: it is deleted. */
function setAgent(enabled: boolean | undefined): Happening {
  return async () => {
    if (enabled !== undefined) await putAgent(server, { tenant, token, id: 'desk' }, { enabled });
    else await callAgentic(server, { tenant, token, path: '/agents/desk', method: 'DELETE' });
  };
}

async function queue(client: NewClient, happen: Happening, sessionId: string = randomUUID()): Promise<string> {
  const { clientId, name: clientName } = client;
  const credentials = { clientId, clientName, scopes: client.scope.split(' ').filter(isScope) };
  const requestId = randomUUID();
  const chat: QueuedChat = {
    tenant,
    agentId: 'desk',
    message: 'Hello',
    sessionId,
    requestId,
    logId: randomUUID(),
    credentials,
  };
  return await inTransaction(server.context.db, async (transaction) => {
    const id = await server.context.jobs.enqueueAgentChat(transaction, chat, { guardsMessage: false });
    await happen(transaction, client);
    return id;
  });
}

const ended = async (id: string) => await endOfJob((path) => server.call(path, { token }), tenant, id);
