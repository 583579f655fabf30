import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { startTestRecorder } from '../../support/server/recorder.ts';
import { startTestServer, testSecretKeys } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// What the recorder refused of a client is judged by the same rules when it is tried again.

const tenant = 'acme';
const mapping = JSON.stringify({
  version: 1,
  tables: { 'public.orders': { entity: 'order', id: ['id'], actor: 'by' } },
});
const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server, { mapping }));
beforeEach(async () => {
  await server.database.pool.query('delete from change_rejected');
});

const environment = () => ({
  DATABASE_URL: server.database.url,
  ANNALS_SECRET_KEY: Buffer.from(testSecretKeys[0] ?? '').toString('base64'),
});

async function rejected(...args: string[]) {
  const { code, stdout, stderr } = await annals(['rejected', ...args], environment());
  expect(stderr).toBe('');
  return {
    code,
    answers: stdout.split('\n').flatMap((line): Record<string, unknown>[] => (line === '' ? [] : [JSON.parse(line)])),
  };
}

async function mappingFile(): Promise<string> {
  const folder = temporaryFolder();
  const file = join(folder, 'mapping.json');
  await writeFile(file, mapping);
  return file;
}

/** A client with the scope to record, and what posts its changes. All of them are refused. */
async function clientOf(...scopes: string[]) {
  const client = await server.createClient(tenant, {
    scope: ['recorder.change_record', ...scopes].join(' '),
    name: `Shop ${randomUUID()}`,
  });
  const token = await server.tokenOf(client);
  return {
    ...client,
    async post(body: object, type = 'application/json') {
      const answer = await recorder.post(tenant, JSON.stringify(body), { token, type });
      expect(await answer.json()).toMatchObject({ read: 1, recorded: 0, rejected: [{ index: 0 }] });
    },
  };
}

const change = (members: object = {}) => ({
  id: randomUUID(),
  op: 'insert',
  entity: 'order',
  entityId: randomUUID(),
  at: new Date().toISOString(),
  after: { a: 1 },
  ...members,
});

/** The actor of the entry of a document; undefined where there is none. */
async function actorOf({ entityId }: { entityId: string }): Promise<string | undefined> {
  const { rows } = await server.database.pool.query<{ actor: string }>(
    'select a.name as actor from change_entry e join change_actor a using (tenant, actor) where e.entity_id = $1',
    [entityId],
  );
  return rows[0]?.actor;
}

async function setScopes(clientId: string, ...scopes: string[]): Promise<void> {
  await server.database.pool.query('update oauth_client set scopes = $2 where client_id = $1', [clientId, scopes]);
}

test('an actor that the client may not set is not recorded by a retry, until the client may set it', async () => {
  const client = await clientOf();
  const changes = [change({ actor: 'system' }), change({ actor: 'Jane' })];
  for (const rejectedChange of changes) await client.post(rejectedChange);
  const noScope = '"actor", "actorId" and "onBehalfOf" need the scope recorder.actor_set';
  expect(await rejected('retry')).toMatchObject({ code: 1, answers: [{ read: 2, recorded: 0, rejected: 2 }] });
  const { answers } = await rejected('list');
  expect(answers).toEqual(
    expect.arrayContaining(
      ['system', 'Jane'].map((actor) =>
        expect.objectContaining({ actor, client: client.clientId, by: client.name, reason: noScope }),
      ),
    ),
  );
  await setScopes(client.clientId, 'recorder.change_record', 'recorder.actor_set');
  expect(await rejected('retry')).toMatchObject({ code: 0, answers: [{ read: 2, recorded: 2 }] });
  expect(await Promise.all(changes.map(actorOf))).toEqual(['system', 'Jane']);
});

test('a change of a client that was revoked, that lost its scope or that is gone stays rejected', async () => {
  const client = await clientOf();
  await client.post(change({ actor: 'Jane' }));
  const reasonAfterRetry = async () => {
    expect(await rejected('retry', '--tenant', tenant)).toMatchObject({ code: 1, answers: [{ read: 1, rejected: 1 }] });
    return (await rejected('list')).answers[0]?.reason;
  };
  await setScopes(client.clientId, 'changelog.changelog_read');
  expect(await reasonAfterRetry()).toBe('its client needs the scope recorder.change_record');
  await setScopes(client.clientId, 'recorder.change_record', 'recorder.actor_set');
  await revokeClient(server.context.db, client.clientId);
  expect(await reasonAfterRetry()).toBe('its client was revoked');
  await server.database.pool.query('delete from oauth_client where client_id = $1', [client.clientId]);
  expect(await reasonAfterRetry()).toBe('its client is not known');
});

test('a posted line in the shape of a kept row is a line', async () => {
  const client = await clientOf('recorder.actor_set');
  const entityId = randomUUID();
  const row = {
    table: 'public.orders',
    type: 'create',
    at: Date.now(),
    identity: '00'.repeat(16),
    primaryKey: ['id'],
    actor: 'system',
    after: { id: entityId },
  };
  await client.post(row);
  expect(await rejected('retry', '--mapping', await mappingFile())).toMatchObject({
    code: 1,
    answers: [{ rejected: 1 }],
  });
  expect(await actorOf({ entityId })).toBeUndefined();
});

test('an empty object is kept as JSON, with the name of its client', async () => {
  const client = await clientOf();
  await client.post({});
  const { answers } = await rejected('list', '--content');
  expect(answers.map(({ actor, change: kept }) => [actor, JSON.parse(String(kept))])).toEqual([
    [client.name, { actor: client.name }],
  ]);
});

test('a change without an id is not recorded by a retry, and a CloudEvent has the identity that it came with', async () => {
  const client = await clientOf();
  const { id: _id, ...withoutId } = change();
  await client.post(withoutId);
  expect(await rejected('retry')).toMatchObject({ code: 1, answers: [{ rejected: 1 }] });
  expect((await rejected('list')).answers[0]?.reason).toBe('"id" is missing');
  const { answers } = await rejected('list', '--tenant', tenant);
  await rejected('drop', '--tenant', tenant, '--id', String(answers[0]?.id));

  const { id, at, ...data } = change({ actor: 'Jane' });
  const event = { specversion: '1.0', id, source: '/shop', type: 'order', time: at, data };
  await client.post(event, 'application/cloudevents+json');
  await setScopes(client.clientId, 'recorder.change_record', 'recorder.actor_set');
  expect(await rejected('retry')).toMatchObject({ code: 0, answers: [{ recorded: 1 }] });
  const again = { token: await server.tokenOf(client), type: 'application/cloudevents+json' };
  // The recorder knows the scopes of a client for some seconds.
  await expect
    .poll(async () => await (await recorder.post(tenant, JSON.stringify(event), again)).json(), { timeout: 10_000 })
    .toMatchObject({ duplicate: 1, rejected: [] });
});

test('a row of Debezium names an actor only by the right of the client', async () => {
  const client = await clientOf();
  const entityId = randomUUID();
  const source = {
    version: '3.2.0',
    connector: 'postgresql',
    name: 'shop',
    ts_ms: Date.now(),
    db: 'shop',
    schema: 'public',
    table: 'orders',
    lsn: 1,
  };
  const event = { op: 'c', ts_ms: Date.now(), before: null, after: { id: entityId, by: 'Jane' }, source };
  await client.post({ schema: null, payload: event });
  const file = await mappingFile();
  expect(await rejected('retry', '--mapping', file)).toMatchObject({ code: 1, answers: [{ rejected: 1 }] });
  await setScopes(client.clientId, 'recorder.change_record', 'recorder.actor_set');
  expect(await rejected('retry', '--mapping', file)).toMatchObject({ code: 0, answers: [{ recorded: 1 }] });
  expect(await actorOf({ entityId })).toBe('Jane');
});

test('a retry takes one id alone, and says where there is none', async () => {
  const client = await clientOf();
  for (const actor of ['one', 'two']) await client.post(change({ actor }));
  await setScopes(client.clientId, 'recorder.change_record', 'recorder.actor_set');
  const [first, second] = (await rejected('list')).answers;
  expect(await rejected('retry', '--tenant', tenant, '--id', String(second?.id))).toMatchObject({
    code: 0,
    answers: [{ read: 1, recorded: 1 }],
  });
  expect((await rejected('list')).answers.map(({ id }) => id)).toEqual([first?.id]);
  const gone = await annals(['rejected', 'retry', '--tenant', tenant, '--id', String(second?.id)], environment());
  expect(gone).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('no rejected change') });
});
