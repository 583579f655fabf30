import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { sealFeedCursor } from '../../../src/history/feed/feed-cursor.ts';
import { createFeedReads, type Matches, type MatchOptions } from '../../../src/history/feed/read-matches.ts';
import { setRetention } from '../../../src/history/retention/retention.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { givePositions, type Position } from '../../../src/recording/positions.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { arbitraryHistory } from '../../support/oracle/history-arbitrary.ts';
import { checkLaw, someOf } from '../../support/oracle/law.ts';
import { arbitraryQuery } from '../../support/oracle/query-arbitrary.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;
const sealer = createSealer([randomBytes(32)]);
const beforeAllOthers: Position = { position: 0, fingerprint: 0 };

let tenants = 0;

const database = closeAfterAll(await createTestDatabase());
const regexes = new RegexMatcherPool();
const { pool, db } = database;
const feed = createFeedReads({ pool, db, regexes, sealer, now: () => now, dictionaries: new DictionaryCache(pool) });

async function newTenant(): Promise<string> {
  tenants += 1;
  const tenant = `acme${tenants}`;
  await createTenant(database.db, tenant);
  return tenant;
}

async function record(tenant: string, changes: readonly Change[]): Promise<void> {
  await createRecorder(database.db, tenant, () => now)(changes);
  await givePositions(database.db, tenant);
}

const from = (at: number, count: number) => Array.from({ length: count }, (_none, i) => changeOf({ at: at + i }));

/** The results of a reader that resumes each call where the last one ended. */
async function readAll(
  tenant: string,
  options: Omit<MatchOptions, 'after'> & { after?: Position },
): Promise<Matches[]> {
  const calls: Matches[] = [];
  for (;;) {
    const after = calls.at(-1)?.reached ?? options.after ?? beforeAllOthers;
    const found = await feed.readMatches(tenant, { ...options, after });
    calls.push(found);
    if (found.caughtUp) return calls;
  }
}

const atsOf = (calls: readonly Matches[]) => calls.flatMap(({ items }) => items.map(({ at }) => at));

test('a reader finds what an evaluator finds, in the order of recording, whatever its limits', async () => {
  const scenario = arbitraryHistory(['one'], now).chain((history) =>
    fc.record({
      history: fc.constant(history),
      asked: someOf(
        fc.record({
          query: arbitraryQuery(history.vocabulary),
          maxItems: fc.constantFrom(7, 40, 1_000),
          maxPositions: fc.constantFrom(60, 10_000),
        }),
        6,
      ),
    }),
  );
  await checkLaw(scenario, { runs: 2 }, async ({ history, asked }) => {
    const tenant = await newTenant();
    for (const { changes, fold } of history.batches) {
      await record(
        tenant,
        changes.map((change) => ({ ...change, identity: randomBytes(16) })),
      );
      if (fold) await foldHistory(database.db, tenant);
    }
    const all = history.batches.flatMap(({ changes }) => changes);
    for (const { query, ...bounds } of asked) {
      const parsed = parseQuery(query.text, changelogDialect);
      // At the beginning of time the default window leaves nothing out.
      const expected = all.flatMap((change, index) => (matches(parsed, change, 0) ? [index + 1] : []));
      const calls = await readAll(tenant, { q: query.text, ...bounds });
      const positions = calls.flatMap(({ items }) => items.map(({ position }) => position));
      expect({ query: query.text, positions }).toEqual({ query: query.text, positions: expected });
      expect(calls.at(-1)?.reached.position).toBe(all.length);
      expect(Math.max(...calls.map(({ items }) => items.length))).toBeLessThanOrEqual(bounds.maxItems);
    }
  });
});

test('an item is the entry as in the list, with every digit, plus its position, cursor and ref', async () => {
  const tenant = await newTenant();
  const paths = '{"price":{"before":1.10,"after":1E400}}';
  await record(tenant, [changeOf({ at: now, paths, entity: 'product', entityId: 'p1', context: '{"trace":7.0}' })]);
  const [plain] = (await feed.readMatches(tenant, { q: '', after: beforeAllOthers, maxItems: 5 })).items;
  expect(plain).toMatchObject({ position: 1, at: now, recordedAt: now, entity: 'product', entityId: 'p1' });
  expect(plain?.text).toBe(
    `{"at":"2026-09-15T10:11:12.345Z","type":"update","entity":"product","entityId":"p1","paths":${paths},` +
      `"actor":"Jane Doe","related":[],"ref":"${plain?.ref}","position":1,"cursor":"${plain?.cursor}"}`,
  );
  const options = { q: '', after: beforeAllOthers, maxItems: 5, withContext: true };
  expect((await feed.readMatches(tenant, options)).items[0]?.text).toContain('"context":{"trace":7.0},"recordedBy":');
});

test('a cursor stands for its position, in its own tenant only, and works with any query', async () => {
  const tenant = await newTenant();
  await record(tenant, from(now, 5));
  const { items } = await feed.readMatches(tenant, { q: 'entity:order', after: beforeAllOthers, maxItems: 2 });
  const after = await feed.positionOf(tenant, items[1]?.cursor ?? '');
  expect(after.position).toBe(2);
  expect(feed.cursorOf(tenant, after)).toBe(items[1]?.cursor);
  expect(atsOf(await readAll(tenant, { q: 'type:update', after, maxItems: 9 }))).toEqual([now + 2, now + 3, now + 4]);
  const otherTenant = await newTenant();
  for (const wrong of [items[1]?.cursor ?? '', 'x', '', 'NOW']) {
    await expect(feed.positionOf(otherTenant, wrong)).rejects.toMatchObject({ type: 'validation_violation' });
  }
});

test('now is after everything committed, including entries without a position', async () => {
  const tenant = await newTenant();
  expect(await feed.positionOf(tenant, 'now')).toEqual(beforeAllOthers);
  await createRecorder(database.db, tenant, () => now)(from(now, 3));
  const after = await feed.positionOf(tenant, 'now');
  expect(after.position).toBe(3);
  const nothing = await feed.readMatches(tenant, { q: '', after, maxItems: 1 });
  expect(nothing).toEqual({
    items: [],
    reached: after,
    cursor: feed.cursorOf(tenant, after),
    caughtUp: true,
    expired: 0,
  });
  await record(tenant, from(now + 3, 1));
  expect(atsOf(await readAll(tenant, { q: '', after, maxItems: 9 }))).toEqual([now + 3]);
});

test('entries dropped by retention are skipped and counted; positions without an entry are not counted', async () => {
  const tenant = await newTenant();
  await record(tenant, from(now, 3));
  await record(tenant, from(now - 5 * day, 4));
  await record(tenant, from(now + 10, 3));
  await database.pool.query(
    `update change_position set ats = ats[:1] || '{-1}' || ats[3:] where tenant = $1 and first = 1`,
    [tenant],
  );
  await setRetention(database.db, tenant, 2, now);
  const calls = await readAll(tenant, { q: '', maxItems: 4 });
  expect(atsOf(calls)).toEqual([now, now + 2, now + 10, now + 11, now + 12]);
  expect(calls.map(({ expired, reached }) => [expired, reached.position])).toEqual([
    [4, 9],
    [0, 10],
  ]);
});

test('start is before the oldest kept entry, or after everything if none is kept', async () => {
  const tenant = await newTenant();
  expect(await feed.positionOf(tenant, 'start')).toEqual(beforeAllOthers);
  await record(tenant, from(now - 5 * day, 4));
  await record(tenant, from(now, 3));
  expect(await feed.positionOf(tenant, 'start')).toEqual(beforeAllOthers);
  await setRetention(database.db, tenant, 2, now);
  const after = await feed.positionOf(tenant, 'start');
  expect(after.position).toBe(4);
  expect(atsOf(await readAll(tenant, { q: '', after, maxItems: 9 }))).toEqual([now, now + 1, now + 2]);
  const expired = await newTenant();
  await record(expired, from(now - 5 * day, 4));
  await setRetention(database.db, expired, 2, now);
  expect((await feed.positionOf(expired, 'start')).position).toBe(4);
});

test('a position with another fingerprint, or that does not exist, is refused with the oldest cursor', async () => {
  const tenant = await newTenant();
  await record(tenant, from(now - 5 * day, 2));
  await record(tenant, from(now, 8));
  await setRetention(database.db, tenant, 2, now);
  const { reached } = await feed.readMatches(tenant, { q: '', after: beforeAllOthers, maxItems: 4 });
  const last = await feed.positionOf(tenant, 'now');
  const oldest = feed.cursorOf(tenant, await feed.positionOf(tenant, 'start'));
  for (const after of [
    { position: reached.position, fingerprint: reached.fingerprint ^ 1 },
    { position: last.position, fingerprint: last.fingerprint ^ 1 },
    { position: 11, fingerprint: last.fingerprint },
    { position: 2 ** 47, fingerprint: 0 },
  ]) {
    await expect(feed.readMatches(tenant, { q: '', after, maxItems: 4 })).rejects.toMatchObject({
      type: 'cursor_invalid',
      status: 410,
      oldest,
      details: [
        { field: 'reason', message: 'restored' },
        { field: 'oldest', message: oldest },
      ],
    });
  }
  expect(oldest).toBe(sealFeedCursor(sealer, tenant, await feed.positionOf(tenant, oldest)));
});

test('a tenant deleted and created again refuses its earlier cursors', async () => {
  const tenant = await newTenant();
  await record(tenant, from(now, 4));
  const after = await feed.positionOf(tenant, 'now');
  await deleteTenant(database.db, tenant);
  await createTenant(database.db, tenant);
  await expect(feed.readMatches(tenant, { q: '', after, maxItems: 4 })).rejects.toMatchObject({
    type: 'cursor_invalid',
  });
  await record(tenant, from(now, 4));
  await expect(feed.readMatches(tenant, { q: '', after, maxItems: 4 })).rejects.toMatchObject({
    type: 'cursor_invalid',
  });
});

test('one call is bounded in positions and bytes, but returns at least one item', async () => {
  const tenant = await newTenant();
  await record(tenant, from(now, 10_100));
  const none = await feed.readMatches(tenant, { q: 'entity:unheard', after: beforeAllOthers, maxItems: 9 });
  expect(none).toMatchObject({ items: [], reached: { position: 10_000 }, caughtUp: false });
  const few = await feed.readMatches(tenant, {
    q: 'type:delete',
    after: beforeAllOthers,
    maxItems: 9,
    maxPositions: 7,
  });
  expect(few.reached.position).toBe(7);
  const long = await newTenant();
  const text = (size: number) => `{"a":{"after":"${'x'.repeat(size)}"}}`;
  await record(
    long,
    [10, 10, 5_000, 10, 500, 500, 10].map((size, i) => changeOf({ at: now + i, paths: text(size) })),
  );
  const calls = await readAll(long, { q: '', maxItems: 100, maxBytes: 1_000 });
  expect(calls.map(({ items }) => items.map(({ position }) => position))).toEqual([[1, 2], [3], [4, 5], [6, 7]]);
});

test('expressions on ids and paths find the same wherever a read begins', async () => {
  const tenant = await newTenant();
  const changes = from(now, 600).map((change, i) => ({
    ...change,
    entityId: `id${i}`,
    paths: `{"p${i}":{"after":1}}`,
  }));
  await record(tenant, changes);
  const { position } = (await feed.readMatches(tenant, { q: '', after: beforeAllOthers, maxItems: 590 })).reached;
  const after = (await feed.readMatches(tenant, { q: '', after: beforeAllOthers, maxItems: position })).reached;
  for (const q of ['entity:order entityId:~"9[57]$"', 'path:~"9[57]$"']) {
    const found = await feed.readMatches(tenant, { q, after, maxItems: 100 });
    expect(found.items.map((item) => item.position)).toEqual([596, 598]);
    expect(
      (await feed.readMatches(tenant, { q, after: beforeAllOthers, maxItems: 3 })).items.map((item) => item.position),
    ).toEqual([96, 98, 196]);
  }
});

test('an invalid query is refused, and a signal aborts the call', async () => {
  const tenant = await newTenant();
  await record(tenant, from(now, 2));
  const options = { after: beforeAllOthers, maxItems: 1 };
  await expect(feed.readMatches(tenant, { ...options, q: 'what:ever' })).rejects.toMatchObject({
    message: expect.stringContaining('Unsupported query field'),
  });
  const stop = new Stop();
  stop.abort(new Error('gone'));
  await expect(feed.readMatches(tenant, { ...options, q: '', signal: stop })).rejects.toThrow('gone');
});
