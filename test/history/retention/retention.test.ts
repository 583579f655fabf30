import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { dropExpired, dropPortion, readHorizon, setRetention } from '../../../src/history/retention/retention.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChange } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { refuseStatements } from '../../support/server/refused-statements.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';

const day = 86_400_000;
const today = Date.UTC(2026, 8, 15);
const always = 'occurredAt:>="1970-01-01T00:00:00Z"';

let now = today + 36_000_000;
const tokens = new Map<string, string>();

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));

function change(daysAgo: number, options: Partial<Change> = {}): Change {
  return {
    identity: randomBytes(16),
    at: today - daysAgo * day + 5_000,
    type: 'update',
    entity: 'order',
    entityId: String(daysAgo),
    actor: `actor ${daysAgo % 3}`,
    related: [{ entity: 'group', entityId: String(daysAgo % 2) }],
    paths: '{}',
    ...options,
  };
}

/** A tenant with three entries a day for `days` days, and 100 within one minute of the tenth day. */
async function makeHistory(tenant: string, days: number): Promise<void> {
  tokens.set(tenant, await server.token(tenant));
  const daily = Array.from({ length: days }, (_, daysAgo) => [change(daysAgo), change(daysAgo), change(daysAgo)]);
  const crowd = Array.from({ length: 100 }, (_, index) => change(10, { at: today - 10 * day + index }));
  await createRecorder(server.context.db, tenant, () => now)([...daily.flat(), ...crowd]);
  await foldHistory(server.context.db, tenant);
}

interface History {
  items: { at: string; entityId: string }[];
  totalElements: number;
}

async function ask(tenant: string, q: string, size = 100): Promise<History> {
  const parameters = new URLSearchParams({ q, size: String(size) });
  const response = await server.call(`/changelog/${tenant}/changelogs?${parameters}`, {
    token: tokens.get(tenant) ?? '',
  });
  expect(response.status).toBe(200);
  return (await response.json()) as History;
}

const shapes = [
  '',
  'entity:order',
  'actor:actor*',
  'actor:~. type:update',
  'related.entity:group',
  'entity:order entityId:*',
  'related.entityId:(0, 1)',
  'compoundLogicalQuery:((actor:*) OR (entity:order entityId:3))',
];

/** The totals of every shape of query over all time: all equal, as each matches everything. */
async function totals(tenant: string): Promise<number[]> {
  return await Promise.all(shapes.map(async (q) => (await ask(tenant, `${q} ${always}`.trim())).totalElements));
}

async function dropAll(tenant: string): Promise<number> {
  let dropped = 0;
  const horizon = await readHorizon(server.context.db, tenant, now);
  for (;;) {
    const portion = await dropPortion(server.context.db, tenant, horizon, { maxRows: 50 });
    if (portion.dropped === 0) break;
    dropped += portion.dropped;
  }
  return dropped;
}

const everywhere = (total: number) => shapes.map(() => total);

test('a horizon of whole UTC days takes effect at once in items and totals of every query', async () => {
  await makeHistory('atonce', 60);
  expect(await totals('atonce')).toEqual(everywhere(60 * 3 + 100));
  const { horizon } = await setRetention(server.context.db, 'atonce', 10, now);
  expect(horizon).toBe(today - 10 * day);
  // Today and ten days before it.
  expect(await totals('atonce')).toEqual(everywhere(11 * 3 + 100));
  for (const q of shapes) {
    const { items } = await ask(
      'atonce',
      `${q} occurredAt:<"${new Date(today - 9 * day).toISOString()}" ${always}`.trim(),
    );
    expect(items).toHaveLength(100);
    expect(items.every(({ at }) => Date.parse(at) >= horizon)).toBe(true);
  }
  const old = `occurredAt:(>="2026-07-01T00:00:00Z" AND <"${new Date(horizon).toISOString()}")`;
  for (const q of shapes)
    expect(await ask('atonce', `${q} ${old}`.trim())).toMatchObject({ items: [], totalElements: 0 });
});

test('totals do not change while rows are deleted and after, with late entries and folds in between', async () => {
  await makeHistory('dropped', 40);
  await setRetention(server.context.db, 'dropped', 7, now);
  const record = createRecorder(server.context.db, 'dropped', () => now);
  const horizon = await readHorizon(server.context.db, 'dropped', now);
  let expected = 8 * 3;
  let gone = 0;
  expect(await totals('dropped')).toEqual(everywhere(expected));
  for (let round = 0; round < 6; round++) {
    gone += (await dropPortion(server.context.db, 'dropped', horizon, { maxRows: 24 })).dropped;
    // Just within the horizon, so that partly deleted cells become dense.
    const late = Array.from({ length: 40 }, (_, index) => change(7, { at: horizon + index }));
    expect(new Set(await record(late))).toEqual(new Set(['recorded']));
    expected += late.length;
    expect(await totals('dropped')).toEqual(everywhere(expected));
    if (round % 2 === 0) await foldHistory(server.context.db, 'dropped');
    expect(await totals('dropped')).toEqual(everywhere(expected));
  }
  // On a slow machine the service drops some as well.
  expect(gone).toBeGreaterThan(0);
  await dropAll('dropped');
  expect(await totals('dropped')).toEqual(everywhere(expected));
  const { rows } = await server.database.pool.query<{ entries: number; related: number }>(
    `select (select count(*) from change_entry where tenant = 'dropped') as entries,
            (select count(*) from change_related where tenant = 'dropped') as related`,
  );
  expect(rows).toEqual([{ entries: expected, related: expected }]);
});

test('an entry recorded without knowing the new horizon is hidden, and dropped too', async () => {
  await makeHistory('racing', 20);
  const { db } = server.context;
  await inTransaction(db, async (transaction) => {
    await recordChange(transaction, 'racing', change(15), now);
    await setRetention(db, 'racing', 10, now);
  });
  await foldHistory(db, 'racing');
  expect(await totals('racing')).toEqual(everywhere(11 * 3 + 100));
  await dropAll('racing');
  await foldHistory(db, 'racing');
  expect(await totals('racing')).toEqual(everywhere(11 * 3 + 100));
});

test('an entry older than the horizon is expired when recorded, even if it exists already', async () => {
  await makeHistory('expired', 1);
  await setRetention(server.context.db, 'expired', 5, now);
  const record = createRecorder(server.context.db, 'expired', () => now);
  const horizon = today - 5 * day;
  const edge = [change(0, { at: horizon - 1 }), change(0, { at: horizon })];
  expect(await record(edge)).toEqual(['expired', 'recorded']);
  expect(await record(edge)).toEqual(['expired', 'duplicate']);
  await setRetention(server.context.db, 'expired', 4, now);
  expect(await record(edge)).toEqual(['expired', 'expired']);
});

test('the horizon advances day by day, never back', async () => {
  await makeHistory('moving', 20);
  const { db } = server.context;
  await setRetention(db, 'moving', 5, now);
  const before = now;
  // A token is valid for hours; each of these days needs its own.
  const pass = async (days: number) => {
    now += days * day;
    tokens.set('moving', await server.token('moving'));
  };
  try {
    await pass(2);
    expect(await totals('moving')).toEqual(everywhere(4 * 3));
    // Entries expired under five days do not come back with twenty.
    const { horizon } = await setRetention(db, 'moving', 20, now);
    expect(horizon).toBe(today - 3 * day);
    expect(await totals('moving')).toEqual(everywhere(4 * 3));
    await pass(30);
    await createRecorder(db, 'moving', () => now)([change(-32)]);
    expect(await totals('moving')).toEqual(everywhere(1));
  } finally {
    now = before;
  }
  // Nor does a clock that is set back.
  await setRetention(db, 'moving', 1_000, now - 100 * day);
  expect(await readHorizon(db, 'moving', now)).toBe(today - 3 * day);
});

test('retention of one tenant does not affect others', async () => {
  await makeHistory('forgets', 20);
  await makeHistory('remembers', 20);
  await setRetention(server.context.db, 'forgets', 1, now);
  await dropAll('forgets');
  expect(await totals('forgets')).toEqual(everywhere(2 * 3));
  expect(await totals('remembers')).toEqual(everywhere(20 * 3 + 100));
});

test('expired entries are dropped for all tenants in turn, and a failing tenant does not block others', async () => {
  const { db } = server.context;
  const { pool } = server.database;
  const { signal } = new AbortController();
  await pool.query('delete from change_retention');
  for (const tenant of ['inturn1', 'inturn2', 'inturn3']) {
    await makeHistory(tenant, 30);
    await setRetention(db, tenant, 5, now);
  }
  const refused = { table: 'change_entry', on: 'delete', tenant: 'inturn2', message: 'refused' } as const;
  const accept = await refuseStatements(pool, refused);
  const statements = recordStatements(...server.context.pool.pools);
  const errors: unknown[] = [];
  const rests: number[] = [];
  const maxRows = 40;
  await dropExpired(db, {
    now: () => now,
    maxRows,
    signal,
    rest: async (taken) => void rests.push(taken),
    onError: (error) => void errors.push(error),
  });
  await accept();
  // The service drops too, in portions of another size.
  const portions = statements
    .filter(({ text, values }) => /^\s*with expired/.test(text) && values[3] === maxRows)
    .map(({ values }) => values);
  const tenants = portions.map(([tenant]) => tenant);
  expect(tenants.slice(0, 5)).toEqual(['inturn1', 'inturn2', 'inturn3', 'inturn1', 'inturn3']);
  expect(errors).toMatchObject([{ message: 'refused' }]);
  expect(rests).toHaveLength(portions.length);
  // Each portion begins where the one before it came to.
  const begins = portions.filter(([tenant]) => tenant === 'inturn1').map(([, from]) => from as number);
  expect(begins).toEqual(begins.toSorted((a, b) => a - b));
  expect(new Set(begins).size).toBeGreaterThan(2);
  const { rows } = await pool.query<{ tenant: string; expired: number }>(
    `select tenant, count(*) filter (where at < $1) as expired from change_entry where tenant like 'inturn%'
       group by 1 order by 1`,
    [today - 5 * day],
  );
  expect(rows).toMatchObject([{ expired: 0 }, { expired: 24 * 3 + 100 }, { expired: 0 }]);
});
