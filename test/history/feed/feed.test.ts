import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { shareFigures } from '../../../src/core/fairness/semaphore.ts';
import { setRetention } from '../../../src/history/retention/retention.ts';
import { requestShares } from '../../../src/http/request-work.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { openFeed } from '../../support/server/feed-events.ts';
import { changeOf } from '../../support/server/history.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

interface FeedAnswer {
  items: { at: string; position: number; cursor: string; ref: string; entityId: string }[];
  cursor: string;
  caughtUp: boolean;
  expired: number;
}

let tenants = 0;

const server = closeAfterAll(await startTestServer());

async function newTenant() {
  tenants += 1;
  const tenant = `acme${tenants}`;
  return { tenant, token: await server.token(tenant) };
}

async function record(tenant: string, ats: readonly number[], more: object = {}): Promise<void> {
  await createRecorder(server.context.db, tenant, () => now)(ats.map((at) => changeOf({ at: now + at, ...more })));
}

async function ask(tenant: string, token: string, parameters: Record<string, string>) {
  const response = await server.call(`/changelog/${tenant}/feed?${new URLSearchParams(parameters)}`, { token });
  return {
    status: response.status,
    body: (await response.json()) as FeedAnswer & { type?: string; details?: unknown },
  };
}

const feedUrl = (tenant: string, parameters: Record<string, string> = {}) =>
  `${server.baseUrl}/changelog/${tenant}/feed?${new URLSearchParams(parameters)}`;

const atsOf = ({ items }: FeedAnswer) => items.map(({ at }) => Date.parse(at) - now);

describe('as JSON', () => {
  test('a reader continues by cursors, sees all that matches, and knows when it has caught up', async () => {
    const { tenant, token } = await newTenant();
    await record(tenant, [5, 3, 9]);
    await record(tenant, [1], { entity: 'product' });
    const { body: begun } = await ask(tenant, token, { after: 'now' });
    expect(begun).toMatchObject({ items: [], caughtUp: true, expired: 0 });
    const { body: first } = await ask(tenant, token, { after: 'start', limit: '2', q: 'entity:order' });
    expect([atsOf(first), first.caughtUp]).toEqual([[5, 3], false]);
    const { body: second } = await ask(tenant, token, { after: first.cursor, q: 'entity:(order,product)' });
    expect([atsOf(second), second.caughtUp]).toEqual([[9, 1], true]);
    expect(second.cursor).toBe(begun.cursor);
    const entry = await server.call(`/changelog/${tenant}/entries?ref=${second.items[1]?.ref}`, { token });
    expect(await entry.json()).toMatchObject({ entity: 'product' });
  });

  test('wait returns as soon as the first item arrives, or empty on timeout', async () => {
    const { tenant, token } = await newTenant();
    const { cursor } = (await ask(tenant, token, {})).body;
    const query = { after: cursor, wait: '25', q: 'entity:product' };
    const waiting = ask(tenant, token, query);
    const sameQuery = ask(tenant, token, query);
    // Neither has found anything before this.
    await record(tenant, [1]);
    expect((await ask(tenant, token, { after: cursor, wait: '25' })).body.items).toHaveLength(1);
    await record(tenant, [2, 3], { entity: 'product' });
    expect(atsOf((await waiting).body)).toEqual([2, 3]);
    expect(atsOf((await sameQuery).body)).toEqual([2, 3]);
    const { body: end } = await ask(tenant, token, { wait: '1' });
    expect(end).toMatchObject({ items: [], caughtUp: true });
  });

  test('entries dropped by retention are counted', async () => {
    const { tenant, token } = await newTenant();
    await record(tenant, [-5 * 86_400_000, 1]);
    await record(tenant, [Date.now() - now]);
    await setRetention(server.context.db, tenant, 1, Date.now());
    const { body } = await ask(tenant, token, { after: 'start', wait: '1' });
    expect(body.items).toHaveLength(1);
    expect(body.expired).toBe(0);
    const cursor = server.context.feed.cursorOf(tenant, { position: 0, fingerprint: 0 });
    expect((await ask(tenant, token, { after: cursor })).body).toMatchObject({ expired: 2, caughtUp: true });
  });

  test.each<[Record<string, string>, string]>([
    [{ limit: '0' }, 'limit must be between 1 and 1000'],
    [{ limit: '1001' }, 'limit must be between 1 and 1000'],
    [{ wait: '26' }, 'wait must be between 0 and 25'],
    [{ wait: '-1' }, 'wait must be between 0 and 25'],
    [{ after: 'then' }, 'after is not a cursor of the feed of this tenant'],
    [{ q: 'what:ever' }, 'Unsupported query field: what'],
    [{ q: 'entityId:1' }, 'entity is required when entityId is provided'],
  ])('%j is 400', async (parameters, message) => {
    const { tenant, token } = await newTenant();
    const { status, body } = await ask(tenant, token, parameters);
    expect({ status, message: (body as { message?: string }).message }).toMatchObject({
      status: 400,
      message: expect.stringContaining(message),
    });
    const events = await openFeed(feedUrl(tenant, parameters), { token });
    expect(events.response.status).toBe(400);
  });

  test('the maximum limit and wait are accepted', async () => {
    const { tenant, token } = await newTenant();
    await record(tenant, [1]);
    expect((await ask(tenant, token, { limit: '1000', wait: '25', after: 'start' })).body.items).toHaveLength(1);
  });

  test('a client without the scope is refused, and the context needs changelog_manage', async () => {
    const { tenant } = await newTenant();
    await record(tenant, [1], { context: '{"trace":7.0}' });
    const without = await server.token(tenant, { scope: 'usage.usage_read' });
    expect((await ask(tenant, without, {})).status).toBe(403);
    const reader = await server.token(tenant, { scope: 'changelog.changelog_read' });
    expect((await ask(tenant, reader, { after: 'start' })).body.items[0]).not.toHaveProperty('context');
    expect((await ask(tenant, reader, { after: 'start', context: 'true' })).status).toBe(403);
    const manager = await server.token(tenant, { scope: 'changelog.changelog_manage' });
    expect((await ask(tenant, manager, { after: 'start', context: 'true' })).body.items[0]).toMatchObject({
      context: { trace: 7 },
      recordedBy: { way: 'import' },
    });
  });
});

describe('as server-sent events', () => {
  test('a reader gets its position at once, then existing changes, caught-up, and new changes', async () => {
    const { tenant, token } = await newTenant();
    await record(tenant, [1, 2]);
    const feed = await openFeed(feedUrl(tenant, { after: 'start' }), { token });
    expect(feed.response.headers.get('content-type')).toBe('text/event-stream');
    expect(feed.response.headers.get('x-accel-buffering')).toBe('no');
    const begun = await feed.until('caught-up');
    expect(begun.map(({ event }) => event)).toEqual(['position', 'change', 'change', 'caught-up']);
    expect(begun[1]?.id).toBe(JSON.parse(begun[1]?.data ?? '').cursor);
    await record(tenant, [3]);
    const change = await feed.nextOf('change');
    expect(JSON.parse(change.data)).toMatchObject({ position: 3, cursor: change.id });
    expect(shareFigures().find(({ name }) => name === requestShares.follows.name)?.taken).toBe(1);
    // Its client resumes by the id, which takes precedence.
    feed.close();
    await record(tenant, [4]);
    const again = await openFeed(feedUrl(tenant, { after: 'start' }), { token, lastEventId: change.id });
    expect((await again.until('caught-up')).map(({ event }) => event)).toEqual(['position', 'change', 'caught-up']);
  });

  test('a last id that is no cursor is refused by the name of its header', async () => {
    const { tenant, token } = await newTenant();
    const { response } = await openFeed(feedUrl(tenant, { after: 'start' }), { token, lastEventId: 'AAAA' });
    const message = 'Last-Event-ID is not a cursor of the feed of this tenant';
    expect(await response.json()).toMatchObject({ status: 400, details: [{ field: 'Last-Event-ID', message }] });
  });

  test('readers of one query that connect at different times each see every change once', async () => {
    const { tenant, token } = await newTenant();
    const cursor = (await ask(tenant, token, {})).body.cursor;
    const feeds: Awaited<ReturnType<typeof openFeed>>[] = [];
    for (let at = 1; at <= 6; at += 1) {
      await record(tenant, [at]);
      feeds.push(await openFeed(feedUrl(tenant, { after: cursor, q: 'type:update' }), { token }));
    }
    for (const feed of feeds) {
      const positions: number[] = [];
      while (positions.at(-1) !== 6) positions.push(JSON.parse((await feed.nextOf('change')).data).position);
      expect(positions).toEqual([1, 2, 3, 4, 5, 6]);
    }
  });

  test('the id of a reader advances over long runs without a match', async () => {
    const { tenant, token } = await newTenant();
    await record(
      tenant,
      Array.from({ length: 12_000 }, (_none, i) => i),
    );
    const feed = await openFeed(feedUrl(tenant, { after: 'start', q: 'type:delete' }), { token });
    const events = await feed.until('caught-up');
    expect(events.map(({ event, data }) => [event, JSON.parse(data).position])).toEqual([
      ['position', 0],
      ['position', 10_000],
      ['caught-up', 12_000],
    ]);
  });

  test('a database restored to an earlier state ends streams with a reset, open ones included', async () => {
    const { tenant, token } = await newTenant();
    await record(tenant, [1, 2, 3]);
    const feed = await openFeed(feedUrl(tenant, { after: 'start' }), { token });
    const id = (await feed.nextOf('caught-up')).id;
    // The same positions, assigned again.
    await server.database.pool.query(
      `update change_position set fingerprints = (select array_agg(one # 1) from unnest(fingerprints) one) where tenant = $1`,
      [tenant],
    );
    await record(tenant, [4]);
    const reset = await feed.nextOf('reset');
    expect(JSON.parse(reset.data)).toEqual({ reason: 'restored', oldest: reset.id });
    expect(await feed.next()).toBeUndefined();
    const refused = await ask(tenant, token, { after: id });
    expect(refused).toMatchObject({
      status: 410,
      body: {
        type: 'cursor_invalid',
        details: [
          { field: 'reason', message: 'restored' },
          { field: 'oldest', message: reset.id },
        ],
      },
    });
    const again = await openFeed(feedUrl(tenant), { token, lastEventId: id });
    expect((await again.until('reset')).map(({ event }) => event)).toEqual(['position', 'reset']);
    const whole = await openFeed(feedUrl(tenant), { token, lastEventId: reset.id });
    expect((await whole.until('caught-up')).filter(({ event }) => event === 'change')).toHaveLength(4);
  });

  test('a client that reads nothing is cut off, and resumes from its last id without a gap', async () => {
    const { tenant, token } = await newTenant();
    const paths = `{"text":{"after":"${'x'.repeat(1_000_000)}"}}`;
    await record(tenant, [0]);
    const connected = once(server.app.server, 'connection');
    const request = http.get(feedUrl(tenant, { after: 'start' }), {
      agent: false,
      headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` },
    });
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const [chunk] = (await once(response, 'data')) as [Buffer];
    response.pause();
    const id = /^id: (.*)$/m.exec(chunk.toString())?.[1] ?? '';
    const cut = once(response, 'error');
    const [ofService] = (await connected) as [Socket];
    let last = 0;
    // Exceeds the buffers of the operating system.
    while (!ofService.destroyed && last < 40) {
      last += 1;
      await record(tenant, [last], { paths });
    }
    // All may be recorded before the stream has filled its buffers.
    if (!ofService.destroyed) await once(ofService, 'close');
    response.resume();
    await cut;
    const again = await openFeed(feedUrl(tenant), { token, lastEventId: id });
    const positions = (await again.until('caught-up'))
      .filter(({ event }) => event === 'change')
      .map(({ data }) => JSON.parse(data).position);
    expect(positions.at(-1)).toBe(last + 1);
    expect(positions.length).toBeGreaterThanOrEqual(last);
  });

  test('a stopping service ends its streams and waiting requests, even one just begun, and sends nothing more', async () => {
    const otherServer = await startTestServer({ database: { ...server.database, drop: async () => {} } });
    const tenant = 'stopping';
    const token = await otherServer.token(tenant);
    const url = (parameters: Record<string, string>) =>
      `${otherServer.baseUrl}/changelog/${tenant}/feed?${new URLSearchParams(parameters)}`;
    const feed = await openFeed(url({}), { token });
    await feed.nextOf('caught-up');
    const requestArrived = once(otherServer.app.server, 'request');
    const waiting = fetch(url({ wait: '25' }), { headers: { authorization: `Bearer ${token}` } });
    waiting.catch(() => {});
    await requestArrived;
    await otherServer.close();
    expect(await feed.until('none')).toEqual([]);
    expect(await (await waiting).json()).toMatchObject({ items: [], caughtUp: true });
  });

  test('the stream of a revoked client ends', async () => {
    const { tenant } = await newTenant();
    const client = await server.createClient(tenant);
    const feed = await openFeed(feedUrl(tenant), { token: await server.tokenOf(client) });
    await feed.nextOf('caught-up');
    await revokeClient(server.context.db, client.clientId);
    expect(await feed.until('none')).toEqual([]);
  });
});
