import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { RestoredCursor } from '../../../src/history/feed/feed-cursor.ts';
import { createFeedReads } from '../../../src/history/feed/read-matches.ts';
import { DictionaryCache } from '../../../src/history/names/dictionary-cache.ts';
import { makeProofKey } from '../../../src/history/proof/sealing/make-key.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { moveTenant } from '../../support/server/cluster.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { runPositionLaw } from '../../support/server/position-law.ts';
import { placesOf } from '../../support/server/positions.ts';
import { runSealingLaw } from '../../support/server/sealing-law.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const random = new Random();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

/** Reads on by cursors until it is told to end, then to the end. Returns the identities that it has seen. */
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
    await reading.finally(() => regexes.close());
    return seen;
  };
}

test('the law of positions holds while processes are killed and the tenant moves forth and back', async () => {
  const { url, db, pool } = database;
  await createTenant(db, 'given');
  const endFollowing = followFeed('given');
  const outcome = await runPositionLaw({
    ...{ url, db, tenant: 'given', seed: random.below(1_000_000) },
    ...{ recorders: 3, transactions: 20, maxDelay: 50, maxChanges: 10, imports: [3_000], kills: trials(4) },
    onKill: async () => void (await moveTenant(cluster, pool, 'given')),
  });
  expect(outcome).toMatchObject({ faults: [], kills: trials(4) });
  expect(outcome.positions).toBeGreaterThan(3_000);
  const { rows } = await pool.query<{ key: string; identity: string }>(
    `select at || ' ' || sequence as key, replace(identity::text, '-', '') as identity from change_entry where tenant = 'given'`,
  );
  const identities = new Map(rows.map(({ key, identity }) => [key, identity]));
  const places = await placesOf(db, 'given');
  expect(await endFollowing()).toEqual(places.map(({ at, sequence }) => identities.get(`${at} ${sequence}`)));
});

test('a log is one while processes that seal it are killed and the tenant moves forth and back', async () => {
  const { url, db, pool } = database;
  const folder = await mkdtemp(join(tmpdir(), 'annals-proof-'));
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
    await rm(folder, { recursive: true });
  }
});
