import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { idRangeOf } from '../../../src/history/search/predicate.ts';
import { buildHistoryIndexes } from '../../../src/history/upkeep/statistics.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { createMigratedTestDatabase } from '../../support/server/database.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';
import { recordStatements } from '../../support/server/statements.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Maximum entries in an id range for a single statement. */
const maxInOneStatement = 20_000;

const long = 'ä'.repeat(63);
const ids = ['d1', 'd10', 'd1%', 'd1_x', 'd2', 'D1', 'd\u{10ffff}', 'd\u{10ffff}x', 'e', '\ud7ff1', '\ue000', long];
/** The index of shorter ids takes ids up to 1,000 bytes. */
const atLimit = 'z'.repeat(1_000);
const pastLimit = `é${'z'.repeat(999)}`;
const changes: Change[] = [...ids, atLimit, pastLimit, `${long}12`, `${long}13`, `${long}1${'y'.repeat(900)}`].flatMap(
  (entityId, place) =>
    ['order', 'site'].map((entity) => changeOf({ at: now - place, entity, entityId, actor: `actor ${place % 3}` })),
);

async function ask(q: string): Promise<{ total: number; ids: string[] }> {
  const { total, entries } = await history.findPage(tenant, parseQuery(q, changelogDialect), { skip: 0, size: 100 });
  return { total, ids: entries.map(({ entity, entityId }) => `${entity} ${entityId}`) };
}

const history = closeAfterAll(await openTestHistory(tenant, () => now, createMigratedTestDatabase));
await createRecorder(history.database.db, tenant, () => now)(changes);
const statements = recordStatements(history.database.pool);

describe.each(['before the index of ids is built', 'after the index of ids is built'])('%s', (when) => {
  beforeAll(async () => {
    if (when.startsWith('after')) await buildHistoryIndexes(history.database.db);
  });

  test.each([
    'entity:order entityId:d1*',
    'entity:order entityId:d*',
    'entity:(order, site) entityId:d1*x',
    'entity:* entityId:d*',
    'entity:order entityId:d1%*',
    'entity:order entityId:\u{10ffff}*',
    'entity:order entityId:d\u{10ffff}*',
    'entity:order entityId:\ud7ff*',
    `entity:order entityId:${long}*`,
    `entity:order entityId:${long}1*`,
    `entity:order entityId:${long}12*`,
    'entity:order entityId:d* actor:actor 1',
    'entity:order entityId:z*',
    'entity:order entityId:é*',
    'entity:order entityId:*z',
    'entity:order entityId:~z{2}$',
    'entity:order entityId:~^[dé]',
    `entity:order entityId:d* occurredAt:(>="${new Date(now - 4).toISOString()}" AND <"${new Date(now).toISOString()}")`,
    'compoundLogicalQuery:((entity:order entityId:d1*) OR (entity:site entityId:e*))',
  ])('%s is answered like an evaluator that reads every entry', async (q) => {
    const query = parseQuery(q, changelogDialect);
    const matching = changes.filter((change) => matches(query, change, now));
    const ordered = matching.toSorted((a, b) => b.at - a.at);
    const found = await ask(q);
    expect(found.total).toBe(matching.length);
    expect(found.ids.toSorted()).toEqual(ordered.map(({ entity, entityId }) => `${entity} ${entityId}`).sort());
  });
});

test('a pattern alone uses the id index', async () => {
  const { pool } = history.database;
  await pool.query('vacuum change_entry');
  statements.length = 0;
  await ask('entity:order entityId:*1');
  const { text, values } = statements.find((one) => one.text.includes('found as materialized')) ?? {
    text: '',
    values: [],
  };
  const client = await pool.connect();
  try {
    // Otherwise the planner scans a small table. Without index scans an index-only scan would cost as much.
    await client.query('begin; set local enable_seqscan = off; set local enable_bitmapscan = off');
    const { rows } = await client.query(`explain ${text}`, values);
    await client.query('rollback');
    expect(JSON.stringify(rows)).toContain('Index Only Scan using change_entry_short_id');
  } finally {
    client.release();
  }
});

test(`up to ${maxInOneStatement} entries with such ids are read in one statement, and more in several`, async () => {
  const record = createRecorder(history.database.db, tenant, () => now);
  const entityId = 'many';
  const many = (count: number) =>
    Array.from({ length: count }, (_none, place) =>
      changeOf({
        identity: randomBytes(16),
        at: now - 100 - place,
        entity: 'crowd',
        entityId,
        actor: `crowd ${place % 3}`,
      }),
    );
  for (let count = 0; count < maxInOneStatement; count += 2_500) await record(many(2_500));
  // Its names are new.
  await ask('entity:crowd actor:crowd*');
  statements.length = 0;
  expect(await ask('entity:crowd entityId:man*')).toMatchObject({ total: maxInOneStatement });
  expect(statements.length).toBe(1);
  // As many places of some actors are read at once, too.
  expect(await ask('entity:crowd actor:crowd*')).toMatchObject({ total: maxInOneStatement });
  await record(many(1));
  statements.length = 0;
  expect(await ask('entity:crowd entityId:man*')).toMatchObject({ total: maxInOneStatement + 1 });
  expect(statements.length).toBeGreaterThan(1);
  expect(await ask('entity:crowd actor:crowd*')).toMatchObject({ total: maxInOneStatement + 1 });
});

test('a pattern without a prefix has no range', () => {
  const glob = (...parts: string[]) => idRangeOf({ kind: 'glob', parts });
  expect(glob('', 'x')).toBeUndefined();
  expect(glob('\u{10ffff}', '')).toBeUndefined();
  expect(glob('a\u{10ffff}', '')).toMatchObject({ from: 'a\u{10ffff}', before: 'b' });
  // surrogates are not characters
  expect(glob('\ud7ff', '')).toMatchObject({ from: '\ud7ff', before: '\ue000' });
  expect(idRangeOf({ kind: 'text', text: 'd1', quoted: false })).toBeUndefined();
});
