import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventSource } from 'eventsource';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { RestoredCursor } from '../../../src/history/feed/feed-cursor.ts';
import { createFeedReads } from '../../../src/history/feed/read-matches.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { makeProofKey } from '../../../src/proof/log/signer.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { moveTenant } from '../../support/server/cluster.ts';
import { startAnnals } from '../../support/server/command.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';
import { runPositionLaw } from '../../support/server/position-law.ts';
import { placesOf } from '../../support/server/positions.ts';
import { runSealingLaw } from '../../support/server/sealing-law.ts';
import { startTestServer, testSecretKeys } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const random = new Random();
const database = closeAfterAll(await createTestDatabase());

/** Reads on by cursors until it is stopped, then to the end. Returns the identities that it has seen. */
function followFeed(tenant: string) {
  const { db, pool } = database;
  const regexes = new RegexMatcherPool();
  const sealer = createSealer([randomBytes(32)]);
  const feed = createFeedReads({ db, pool, regexes, sealer, now: Date.now, dictionaries: new DictionaryCache(pool) });
  let isOver = false;
  const seen: string[] = [];
  const reading = (async () => {
    for (let cursor = 'start', isAtEnd = false; !isAtEnd; await sleep(5)) {
      const isLast = isOver;
      try {
        const after = await feed.positionOf(tenant, cursor);
        const matches = await feed.readMatches(tenant, { q: '', after, maxItems: 100 });
        seen.push(...matches.items.map(({ identity }) => identity));
        cursor = matches.cursor;
        isAtEnd = isLast && matches.caughtUp;
      } catch (error) {
        if (isLast || error instanceof RestoredCursor) throw error;
      }
    }
  })();
  reading.catch(() => {});
  return async () => {
    isOver = true;
    await reading;
    return seen;
  };
}

/**
 * Follows by server-sent events, over connections that are cut with `cut`, and by `annals tail`. The positions grow as
 * they come.
 */
async function followOutside(tenant: string) {
  const server = await startTestServer({ database });
  const token = await server.token(tenant);
  const events = new EventSource(`${server.baseUrl}/changelog/${tenant}/feed?after=start`, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } }),
  });
  let opened = 0;
  events.addEventListener('open', () => {
    opened += 1;
  });
  const bySse: number[] = [];
  const byTail: number[] = [];
  events.addEventListener('change', ({ data }) => bySse.push(JSON.parse(data).position));
  const [key = new Uint8Array()] = testSecretKeys;
  const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: Buffer.from(key).toString('base64') };
  const tail = startAnnals(['tail', '--tenant', tenant, '--after', 'start'], environment);
  const lines = createInterface({ input: tail.process.stdout as Readable });
  lines.on('line', (line) => byTail.push(JSON.parse(line).position));
  onTestFinished(async () => {
    events.close();
    tail.process.kill('SIGTERM');
    await tail.ended;
    await server.close();
  });
  return { bySse, byTail, opened: () => opened, cut: () => server.app.server.closeAllConnections() };
}

test('the law of positions holds while processes are killed and the tenant moves forth and back', async () => {
  const { url, db, pool } = database;
  await createTenant(db, 'given');
  const endFollowing = followFeed('given');
  const { bySse, byTail, opened, cut } = await followOutside('given');
  const outcome = await runPositionLaw({
    ...{ url, db, tenant: 'given', seed: random.below(1_000_000) },
    ...{ recorders: 3, transactions: 20, maxDelay: 50, maxChanges: 10, imports: [3_000], kills: trials(4) },
    onKill: async () => {
      cut();
      await moveTenant(cluster, pool, 'given');
    },
  });
  expect(outcome).toMatchObject({ faults: [], kills: trials(4) });
  expect(outcome.positions).toBeGreaterThan(3_000);
  const { rows } = await pool.query<{ key: string; identity: string }>(
    `select at || ' ' || sequence as key, replace(identity::text, '-', '') as identity from change_entry where tenant = 'given'`,
  );
  const identities = new Map(rows.map(({ key, identity }) => [key, identity]));
  const places = await placesOf(db, 'given');
  expect(await endFollowing()).toEqual(places.map(({ at, sequence }) => identities.get(`${at} ${sequence}`)));
  const positions = places.map(({ position }) => position);
  for (const seen of [bySse, byTail]) {
    await eventually(() => seen.length).toBeGreaterThanOrEqual(positions.length);
    expect(seen).toEqual(positions);
  }
  expect(opened()).toBeGreaterThan(1);
});

test('a log is one while processes that seal it are killed and the tenant moves forth and back', async () => {
  const { url, db, pool } = database;
  const folder = temporaryFolder();
  try {
    await createTenant(db, 'sealed');
    const keyFile = join(folder, 'proof.key');
    makeProofKey(keyFile);
    let moves = 0;
    let moving: Promise<unknown> = Promise.resolve();
    const outcome = await runSealingLaw({
      ...{ url, db, tenant: 'sealed', keyFile, kills: trials(6), random },
      // A move begins with every third kill, and the next one comes amid it.
      onKill: async (kills) => {
        if (kills % 3 === 0) await moving;
        if (kills % 3 !== 1) return;
        moves += 1;
        moving = moveTenant(cluster, pool, 'sealed');
        moving.catch(() => {});
      },
    });
    await moving;
    expect(outcome).toMatchObject({ faults: [] });
    expect(moves).toBe(trials(2));
  } finally {
  }
});
