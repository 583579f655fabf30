import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { checkLaw } from '../../support/oracle/law.ts';
import { annals } from '../../support/server/command.ts';
import { type PostOptions, startTestRecorder } from '../../support/server/recorder.ts';
import { startTestServer, testSecretKeys } from '../../support/server/server.ts';

const tenant = 'acme';
const mapping = JSON.stringify({
  version: 1,
  tables: {
    'public.orders': {
      entity: 'order',
      id: ['id'],
      actor: 'who',
      actorId: 'who_id',
      onBehalfOf: { name: 'client', id: 'client_id' },
      correlationId: 'request',
    },
  },
});
const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server, { mapping }));
const manage = 'changelog.changelog_manage';
const token = await server.token(tenant, {
  name: 'Shop',
  scope: `recorder.change_record recorder.actor_set ${manage}`,
});
const plain = await server.token(tenant, { name: 'Plain', scope: `recorder.change_record ${manage}` });

const cloudEvents = { type: 'application/cloudevents+json' };
const traceId = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

async function send(body: unknown, options: PostOptions = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await recorder.post(tenant, text, { token, type: 'application/json', ...options });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

interface Members {
  actor?: string;
  actorId?: string;
  onBehalfOf?: { name?: string; id?: string };
  correlationId?: string;
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

function cloudEvent({ id, at: time, ...data }: ReturnType<typeof change>, attributes: object = {}) {
  return { specversion: '1.0', id, source: '/shop', type: 'changed', time, ...attributes, data };
}

function attributesOf({ actor, actorId, onBehalfOf, correlationId }: Members) {
  const attributes = {
    actor,
    actorid: actorId,
    onbehalfofname: onBehalfOf?.name,
    onbehalfofid: onBehalfOf?.id,
    correlationid: correlationId,
  };
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

let lsn = 0;

function debeziumEvent(op: string, entityId: string, { actor, actorId, onBehalfOf, correlationId }: Members = {}) {
  lsn += 1;
  const columns = {
    who: actor ?? null,
    who_id: actorId ?? null,
    client: onBehalfOf?.name ?? null,
    client_id: onBehalfOf?.id ?? null,
    request: correlationId ?? null,
  };
  const source = { connector: 'postgresql', name: 'shop', ts_ms: Date.now(), schema: 'public', table: 'orders', lsn };
  const row = { id: entityId, ...columns };
  return { op, ...(op === 'd' ? { before: row } : { after: row }), source };
}

async function entryOf(entityId: string): Promise<Members> {
  const q = encodeURIComponent(`entity:order entityId:${entityId}`);
  const answer = await server.call(`/changelog/${tenant}/changelogs?q=${q}`, { token });
  const { items } = (await answer.json()) as { items: Members[] };
  expect(items).toHaveLength(1);
  const { actor, actorId, onBehalfOf, correlationId } = items[0] ?? {};
  return JSON.parse(JSON.stringify({ actor, actorId, onBehalfOf, correlationId }));
}

/** The ways of a change over HTTP. */
const ways: Record<string, (entityId: string, members: Members) => Promise<unknown>> = {
  'a JSON object': async (entityId, members) => await send(change({ entityId, ...members })),
  'a JSON array': async (entityId, members) => await send([change({ entityId, ...members })]),
  lines: async (entityId, members) =>
    await send(`${JSON.stringify(change({ entityId, ...members }))}\n`, { type: 'application/x-ndjson' }),
  'data of a CloudEvent': async (entityId, members) =>
    await send(cloudEvent(change({ entityId, ...members })), cloudEvents),
  'attributes of a CloudEvent': async (entityId, members) =>
    await send(cloudEvent(change({ entityId }), attributesOf(members)), cloudEvents),
  'a batch of CloudEvents': async (entityId, members) =>
    await send([cloudEvent(change({ entityId }), attributesOf(members))], {
      type: 'application/cloudevents-batch+json',
    }),
  'headers of a CloudEvent': async (entityId, members) => {
    const { data, ...attributes } = cloudEvent(change({ entityId }), attributesOf(members));
    const headers = Object.entries(attributes).map(([name, value]) => [
      `ce-${name}`,
      encodeURIComponent(String(value)),
    ]);
    return await send(data, { headers: Object.fromEntries(headers) });
  },
  'an event of Debezium': async (entityId, members) => await send(debeziumEvent('c', entityId, members)),
};

const text = (maxLength: number) =>
  fc
    .string({ unit: 'binary', minLength: 1, maxLength })
    .filter((value) => !value.includes('\0') && [...value].length <= maxLength);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const arbitraryMembers: fc.Arbitrary<Members> = fc
  .record({
    actor: optional(text(20)),
    actorId: optional(text(20)),
    name: optional(text(20)),
    id: optional(text(20)),
    correlationId: optional(fc.oneof(text(20), fc.uuid())),
  })
  .map(({ name, id, ...members }) => {
    const onBehalfOf = name === undefined && id === undefined ? undefined : { name, id };
    return JSON.parse(JSON.stringify({ ...members, onBehalfOf }));
  });

test('a change has the same members, whichever way it comes', async () => {
  await checkLaw(arbitraryMembers, { runs: 15 }, async (members) => {
    const { actor = 'actorId' in members || 'onBehalfOf' in members ? 'unknown' : 'Shop', ...rest } = members;
    for (const [way, record] of Object.entries(ways)) {
      const entityId = randomUUID();
      expect(await record(entityId, members), way).toMatchObject({ status: 200, body: { recorded: 1 } });
      expect(await entryOf(entityId), way).toEqual({ actor, ...rest });
    }
  });
});

describe('a change is rejected', () => {
  const x = (length: number) => '😀'.repeat(length);
  const reasonOf = async (members: object, options: PostOptions = {}) => {
    const { body } = await send(change(members), options);
    return (body.rejected as { reason: string }[])[0]?.reason;
  };

  test.each([
    [{ actorId: '' }, '"actorId" is empty'],
    [{ actorId: x(1001) }, '"actorId" has more than 1000 characters'],
    [{ actorId: 'a\0' }, '"actorId" has a NUL character'],
    [{ actorId: '\ud800' }, '"actorId" has a lone surrogate'],
    [{ actorId: 17 }, '"actorId" is no string'],
    [{ onBehalfOf: 'Acme' }, '"onBehalfOf" is no object'],
    [{ onBehalfOf: {} }, '"onBehalfOf" has neither name nor id'],
    [{ onBehalfOf: { name: null, id: null } }, '"onBehalfOf" has neither name nor id'],
    [{ onBehalfOf: { id: '' } }, '"onBehalfOf.id" is empty'],
    [{ onBehalfOf: { name: x(1001) } }, '"onBehalfOf.name" has more than 1000 characters'],
    [{ onBehalfOf: { name: ['Acme'] } }, '"onBehalfOf.name" is no string'],
    [{ onBehalfOf: { id: 'c', email: 'e' } }, '"onBehalfOf.email" is not a member of a person'],
    [{ correlationId: '' }, '"correlationId" is empty'],
    [{ correlationId: x(201) }, '"correlationId" has more than 200 characters'],
    [{ correlationId: 'a\0' }, '"correlationId" has a NUL character'],
    [{ correlationId: '\udc00' }, '"correlationId" has a lone surrogate'],
    [{ correlationId: {} }, '"correlationId" is no string'],
  ])('with %j', async (members, reason) => {
    expect(await reasonOf(members)).toBe(reason);
  });

  test('never at the limits of its members, nor for null', async () => {
    const members = { actorId: x(1000), onBehalfOf: { name: x(1000), id: x(1000) }, correlationId: x(200) };
    const recorded = change(members);
    expect(await send(recorded)).toMatchObject({ body: { recorded: 1 } });
    expect(await entryOf(recorded.entityId)).toEqual({ actor: 'unknown', ...members });
    const shortest = change({ actorId: 'a', onBehalfOf: { name: null, id: 'b' }, correlationId: 'c' });
    expect(await send(shortest)).toMatchObject({ body: { recorded: 1 } });
    const nulls = change({ actor: null, actorId: null, onBehalfOf: null, correlationId: null });
    expect(await send(nulls, { token: plain })).toMatchObject({ body: { recorded: 1 } });
    expect(await entryOf(nulls.entityId)).toEqual({ actor: 'Plain' });
  });

  test('without recorder.actor_set where it says who, and not for its correlation', async () => {
    const reason = '"actor", "actorId" and "onBehalfOf" need the scope recorder.actor_set';
    for (const members of [{ actor: 'Jane' }, { actorId: 'u-17' }, { onBehalfOf: { id: 'c-1' } }]) {
      expect(await reasonOf(members, { token: plain })).toBe(reason);
      const event = cloudEvent(change(), attributesOf(members));
      expect(await send(event, { ...cloudEvents, token: plain })).toMatchObject({ body: { rejected: [{ reason }] } });
      const row = debeziumEvent('c', randomUUID(), members);
      expect(await send(row, { token: plain })).toMatchObject({ body: { rejected: [{ reason }] } });
    }
    const correlated = change({ correlationId: 'r' });
    expect(await send(correlated, { token: plain })).toMatchObject({ body: { recorded: 1 } });
    expect(await entryOf(correlated.entityId)).toEqual({ actor: 'Plain', correlationId: 'r' });
  });
});

test('who made the change of a CloudEvent is said by its data alone, or by its attributes alone', async () => {
  const attributes = { actor: 'Old', actorid: 'u-1', onbehalfofid: 'c-1', correlationid: 'of attributes' };
  const record = async (data: object) => {
    const sent = change(data);
    expect(await send(cloudEvent(sent, attributes), cloudEvents)).toMatchObject({ body: { recorded: 1 } });
    return await entryOf(sent.entityId);
  };
  expect(await record({ actor: 'Jane' })).toEqual({ actor: 'Jane', correlationId: 'of attributes' });
  expect(await record({ onBehalfOf: { name: 'Acme' }, correlationId: 'of data' })).toEqual({
    actor: 'unknown',
    onBehalfOf: { name: 'Acme' },
    correlationId: 'of data',
  });
  expect(await record({ actor: null, correlationId: null })).toEqual({
    actor: 'Old',
    actorId: 'u-1',
    onBehalfOf: { id: 'c-1' },
    correlationId: 'of attributes',
  });
});

describe('the correlation that a change does not give', () => {
  const headers = { traceparent };
  const correlationsOf = async (body: unknown, sent: { entityId: string }[], options: PostOptions) => {
    expect(await send(body, options)).toMatchObject({ body: { recorded: sent.length } });
    return await Promise.all(sent.map(async ({ entityId }) => (await entryOf(entityId)).correlationId));
  };

  test('is the trace of a request with one change', async () => {
    const [one, own, first, second] = [change(), change({ correlationId: 'own' }), change(), change()];
    expect(await correlationsOf(one, [one], { headers })).toEqual([traceId]);
    expect(await correlationsOf(own, [own], { headers })).toEqual(['own']);
    expect(await correlationsOf([first, second], [first, second], { headers })).toEqual([undefined, undefined]);
    const entityId = randomUUID();
    expect(await correlationsOf(debeziumEvent('c', entityId), [{ entityId }], { headers })).toEqual([traceId]);
    const snapshot = randomUUID();
    expect(await correlationsOf(debeziumEvent('r', snapshot), [{ entityId: snapshot }], { headers })).toEqual([
      undefined,
    ]);
  });

  test.each([
    '',
    traceId,
    `00-${traceId}-b7ad6b7169203331`,
    `00-${traceId.toUpperCase()}-b7ad6b7169203331-01`,
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-b7ad6b7169203331-01-more`,
    `ff-${traceId}-b7ad6b7169203331-01`,
    `${traceparent}, ${traceparent}`,
  ])('is none for the traceparent %j', async (invalid) => {
    const one = change();
    expect(await correlationsOf(one, [one], { headers: { traceparent: invalid } })).toEqual([undefined]);
  });

  test('is one for all changes of a request with ?correlation=request: its trace, or else its id', async () => {
    const query = '?correlation=request';
    const sent = () => [change(), change({ correlationId: 'own' }), change()];
    const traced = sent();
    expect(await correlationsOf(traced, traced, { query, headers })).toEqual([traceId, 'own', traceId]);
    const named = sent();
    const requestId = { 'x-request-id': 'req-7' };
    expect(await correlationsOf(named, named, { query, headers: requestId })).toEqual(['req-7', 'own', 'req-7']);
    const [one] = [change()];
    expect(await correlationsOf([one], [one], { query })).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  });

  test.each(['', 'requests', 'Request', 'true', 'request&correlation=request'])(
    'cannot be derived by ?correlation=%s',
    async (value) => {
      const { status, body } = await send(change(), { query: `?correlation=${value}` });
      expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining('correlation must be')]);
    },
  );

  test('is the trace of its CloudEvent', async () => {
    const [one, two] = [change(), change()];
    const events = [cloudEvent(one, { traceparent }), cloudEvent(two)];
    const batch = { type: 'application/cloudevents-batch+json' };
    expect(await correlationsOf(events, [one, two], batch)).toEqual([traceId, undefined]);
    const other = { traceparent: traceparent.replace(traceId, 'f'.repeat(32)) };
    const [own, binary, invalid] = [change(), change(), change()];
    expect(await correlationsOf(cloudEvent(own, { traceparent }), [own], { ...cloudEvents, headers: other })).toEqual([
      traceId,
    ]);
    const { data: body, ...binaryAttributes } = cloudEvent(binary, { traceparent });
    const ce = Object.entries(binaryAttributes).map(([name, value]) => [`ce-${name}`, String(value)]);
    expect(await correlationsOf(body, [binary], { headers: Object.fromEntries(ce) })).toEqual([traceId]);
    const faulty = cloudEvent(invalid, { traceparent: traceId, correlationid: 'given' });
    expect(await correlationsOf(faulty, [invalid], cloudEvents)).toEqual(['given']);
    const row = randomUUID();
    const { op, source, ...data } = debeziumEvent('c', row);
    const origin = Object.entries({ op, ...source }).map(([name, value]) => [
      `iodebezium${name.replaceAll('_', '')}`,
      value,
    ]);
    const attributes = { specversion: '1.0', id: row, source: '/shop', type: 'row', traceparent };
    const event = { ...attributes, ...Object.fromEntries(origin), data };
    expect(await correlationsOf(event, [{ entityId: row }], cloudEvents)).toEqual([traceId]);
  });

  test('is no content: a repeat with another one is a duplicate, and the first stays', async () => {
    const [derived, given] = [change(), change({ correlationId: 'given' })];
    await send(derived, { headers });
    expect(await send(derived, { query: '?correlation=request' })).toMatchObject({ body: { duplicate: 1 } });
    expect(await send(derived)).toMatchObject({ body: { duplicate: 1 } });
    expect((await entryOf(derived.entityId)).correlationId).toBe(traceId);
    await send(given, { headers });
    expect(await send(given)).toMatchObject({ body: { duplicate: 1 } });
    const reason = 'has the id and time of another change with other content';
    const others = [{ correlationId: 'other' }, { actorId: 'u-17' }, { onBehalfOf: { id: 'c-1' } }];
    for (const other of others) {
      expect(await send({ ...given, ...other })).toMatchObject({ body: { rejected: [{ reason }] } });
    }
  });
});

describe('a rejected change', () => {
  beforeEach(async () => {
    await server.database.pool.query('delete from change_rejected');
  });
  const environment = {
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: Buffer.from(testSecretKeys[0] ?? '').toString('base64'),
  };
  const rejected = async (...args: string[]) => {
    const { stdout } = await annals(['rejected', ...args], environment);
    return stdout.split('\n').flatMap((line): Record<string, unknown>[] => (line === '' ? [] : [JSON.parse(line)]));
  };

  test('keeps who made it and its correlation, until a retry records them', async () => {
    const client = await server.createClient(tenant, { scope: 'recorder.change_record', name: 'Late' });
    const options = { token: await server.tokenOf(client) };
    const members = { actorId: 'u-17', onBehalfOf: { name: 'Acme' }, correlationId: 'r' };
    const [all, traced, named] = [
      change(members),
      change({ actorId: 'u-18' }),
      change({ actor: 'Late', actorId: 'u-19' }),
    ];
    const event = cloudEvent(change(), { ...attributesOf(members), traceparent });
    await send(all, options);
    await send(traced, { ...options, headers: { traceparent } });
    await send(named, options);
    await send(event, { ...options, ...cloudEvents });
    const shown = await rejected('list', '--content');
    expect(shown.map(({ actorId }) => actorId).sort()).toEqual(['u-17', 'u-17', 'u-18', 'u-19']);
    expect(await rejected('retry')).toMatchObject([{ read: 4, recorded: 0, rejected: 4 }]);
    await server.database.pool.query('update oauth_client set scopes = $2 where client_id = $1', [
      client.clientId,
      ['recorder.change_record', 'recorder.actor_set'],
    ]);
    expect(await rejected('retry')).toMatchObject([{ read: 4, recorded: 4 }]);
    expect(await entryOf(all.entityId)).toEqual({ actor: 'unknown', ...members });
    expect(await entryOf(traced.entityId)).toEqual({ actor: 'unknown', actorId: 'u-18', correlationId: traceId });
    expect(await entryOf(named.entityId)).toEqual({ actor: 'Late', actorId: 'u-19' });
    expect(await entryOf(event.data.entityId)).toEqual({ actor: 'unknown', ...members });
    const renewed = { token: await server.tokenOf(client) };
    // The recorder knows the scopes of a client for some seconds.
    await expect.poll(() => send(traced, renewed), { timeout: 10_000 }).toMatchObject({ body: { duplicate: 1 } });
  });
});
