import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startTestRecorder } from '../../support/server/recorder.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const mapping = JSON.stringify({
  version: 1,
  people: 'user',
  tables: {
    'public.users': { entity: 'user', id: ['id'], name: 'full_name' },
    'public.orders': { entity: 'order', id: ['id'], actorId: 'updated_by' },
  },
});
const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server, { mapping }));
const token = await server.token(tenant, {
  name: 'Shop',
  scope: 'recorder.change_record recorder.actor_set changelog.changelog_manage',
});

interface Sent {
  id: string;
  entity: string;
  entityId: string;
}

const change = (entity: string, members: object): Sent => ({
  ...{ id: randomUUID(), op: 'insert', entity, entityId: randomUUID(), at: new Date().toISOString(), after: { a: 1 } },
  ...members,
});
const order = (members: object) => change('order', members);
const user = (entityId: string, name?: string) => change('user', { entityId, ...(name !== undefined && { name }) });

async function send(...changes: object[]) {
  const answer = await recorder.post(tenant, JSON.stringify(changes), { token, type: 'application/json' });
  return (await answer.json()) as Record<string, unknown>;
}

async function actorOf({ entity, entityId }: Sent): Promise<string> {
  const q = encodeURIComponent(`entity:${entity} entityId:${entityId}`);
  const answer = await server.call(`/changelog/${tenant}/changelogs?q=${q}`, { token });
  const { items } = (await answer.json()) as { items: { actor: string; actorId?: string }[] };
  expect(items).toHaveLength(1);
  return `${items[0]?.actor} (${items[0]?.actorId})`;
}

test('a change with an id and no name of its actor gets the last name of the person', async () => {
  const [id, before, after, own] = [randomUUID(), ...['', '', ''].map(() => randomUUID())] as const;
  const orders = [before, after, own].map((entityId) => order({ entityId, actorId: id }));
  const [first, second, named] = orders as [Sent, Sent, Sent];
  await send(user(id, 'Jane Doe'), user(randomUUID(), 'Jim Roe'));
  await send(first);
  await send(user(id, 'Jane Smith'));
  await send(second, { ...named, actor: 'Jay' });
  expect(await actorOf(first)).toBe(`Jane Doe (${id})`);
  expect(await actorOf(second)).toBe(`Jane Smith (${id})`);
  expect(await actorOf(named)).toBe(`Jay (${id})`);
});

test('names of earlier changes of the same request count, those of later ones and of other entities do not', async () => {
  const id = randomUUID();
  const [early, late] = [order({ actorId: id }), order({ actorId: id })];
  await send(change('customer', { entityId: id, name: 'A customer' }), early, user(id, 'Jane'), late);
  expect(await actorOf(early)).toBe(`unknown (${id})`);
  expect(await actorOf(late)).toBe(`Jane (${id})`);
});

test('the change of a person by themselves has the name that it sets', async () => {
  const id = randomUUID();
  const own = change('user', { entityId: id, name: 'Jane', actorId: id });
  await send(own);
  expect(await actorOf(own)).toBe(`Jane (${id})`);
});

test('a person without a name stays unknown, and the name is read from the last 64 changes', async () => {
  const [named, lost] = [randomUUID(), randomUUID()];
  const touches = (id: string, count: number) => Array.from({ length: count }, () => user(id));
  await send(user(named, 'Jane'), ...touches(named, 63), user(lost, 'Zoe'), ...touches(lost, 64));
  const orders = [order({ actorId: named }), order({ actorId: lost }), order({ actorId: 'nobody' })];
  await send(...orders);
  expect(await Promise.all(orders.map(actorOf))).toEqual([`Jane (${named})`, `unknown (${lost})`, 'unknown (nobody)']);
});

test('a name that was looked up is no content: a repeat is a duplicate, another id or person is a conflict', async () => {
  const id = randomUUID();
  const sent = order({ actorId: id, onBehalfOf: { id: 'c-1' } });
  expect(await send(sent)).toMatchObject({ recorded: 1 });
  await send(user(id, 'Jane'));
  expect(await send(sent)).toMatchObject({ duplicate: 1 });
  await send(user(id, 'Ann'));
  expect(await send(sent)).toMatchObject({ duplicate: 1 });
  expect(await actorOf(sent)).toBe(`unknown (${id})`);
  expect(await send({ ...sent, actorId: 'u-2' })).toMatchObject({ rejected: [{}] });
  expect(await send({ ...sent, onBehalfOf: { id: 'c-2' } })).toMatchObject({ rejected: [{}] });
  expect(await send({ ...sent, actor: 'Jay' })).toMatchObject({ rejected: [{}] });
});

test('rows of Debezium: the id is a column, the name comes from the row of the person', async () => {
  const [id, entityId] = [randomUUID(), randomUUID()];
  const event = (table: string, after: object, lsn: number) => ({
    op: 'c',
    after,
    source: { connector: 'postgresql', name: 'shop', ts_ms: Date.now(), schema: 'public', table, lsn },
  });
  await send(
    event('users', { id, full_name: 'Jane Doe' }, 1),
    event('orders', { id: entityId, updated_by: id, status: 'NEW' }, 2),
  );
  expect(await actorOf({ id: '', entity: 'order', entityId })).toBe(`Jane Doe (${id})`);
});

test('a tenant gets no name of another', async () => {
  const id = randomUUID();
  await send(user(id, 'Jane'));
  const other = await server.token('other', {
    name: 'Shop',
    scope: 'recorder.change_record recorder.actor_set changelog.changelog_manage',
  });
  const sent = order({ actorId: id });
  await recorder.post('other', JSON.stringify([sent]), { token: other, type: 'application/json' });
  const answer = await server.call(`/changelog/other/changelogs?q=entity:order%20entityId:${sent.entityId}`, {
    token: other,
  });
  expect(await answer.json()).toMatchObject({ items: [{ actor: 'unknown', actorId: id }] });
});
