import { randomBytes } from 'node:crypto';
import { CompiledQuery } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { setRetention } from '../../src/history/retention/retention.ts';
import { createFindPage } from '../../src/history/search/find-page.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { inTransaction, isLostRace } from '../../src/postgres/transaction.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';
import type { Change, Outcome, RecordChanges } from '../../src/recording/change.ts';
import { createRecorder, recordChange, recordChanges } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Random } from '../support/oracle/random.ts';
import { createTestDatabase } from '../support/server/database.ts';
import { changeOf } from '../support/server/history.ts';

const random = new Random();

const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

let tenant: string;
let record: RecordChanges;

const database = closeAfterAll(await createTestDatabase());
const regexes = new RegexMatcherPool();
const findPage = createFindPage({ pool: database.pool, db: database.db, regexes, now: () => now });

beforeEach(async () => {
  tenant = `t${randomBytes(6).toString('hex')}`;
  await createTenant(database.db, tenant);
  record = createRecorder(database.db, tenant, () => now);
});

function change(options: Partial<Change> = {}): Change {
  return changeOf({ at: now - day, ...options });
}

async function find(q: string, size = 100) {
  return await findPage(tenant, parseQuery(q, changelogDialect), { skip: 0, size });
}

async function rowsOf(table: string): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(`select count(*) from ${table} where tenant = $1`, [
    tenant,
  ]);
  return rows[0]?.count ?? -1;
}

describe('identities', () => {
  const identity = Buffer.alloc(16, 7);

  test('the same change again is a duplicate, in the same batch, in another one, and alone', async () => {
    const repeated = change({ identity, name: 'N', schemaVersion: '1', related: [{ entity: 'g', entityId: '1' }] });
    expect(await record([repeated, { ...repeated }])).toEqual(['recorded', 'duplicate']);
    expect(await record([repeated])).toEqual(['duplicate']);
    expect(await record([change(), repeated, change()])).toEqual(['recorded', 'duplicate', 'recorded']);
    expect((await find('')).total).toBe(3);
    expect(await rowsOf('change_related')).toBe(1);
  });

  const original = change({ identity, name: 'N', schemaVersion: '1', related: [{ entity: 'g', entityId: '1' }] });
  test.each<[string, Partial<Change>]>([
    ['type', { type: 'create' }],
    ['entity', { entity: 'orders' }],
    ['entityId', { entityId: '2' }],
    ['actor', { actor: 'jane doe' }],
    ['name', { name: 'n' }],
    ['name, unknown', { name: undefined as never }],
    ['schemaVersion', { schemaVersion: '1.0' }],
    ['paths', { paths: '{"a":{"after":1.0}}' }],
    ['related', { related: [] }],
    ['the id of a related item', { related: [{ entity: 'g', entityId: '2' }] }],
    ['one related item more', { related: [...original.related, ...original.related] }],
  ])('the same identity and time with another %s is a conflict, and the first one stays', async (_what, difference) => {
    const different = { ...original, ...difference };
    expect(await record([original, different])).toEqual(['recorded', 'conflict']);
    expect(await record([different])).toEqual(['conflict']);
    expect(await record([original])).toEqual(['duplicate']);
    expect(await find('')).toMatchObject({ total: 1, entries: [{ name: 'N', actor: 'Jane Doe' }] });
  });

  test('the same identity at another time, or in another tenant, is another change', async () => {
    expect(await record([original, { ...original, at: original.at + 1 }])).toEqual(['recorded', 'recorded']);
    await createTenant(database.db, `${tenant}x`);
    expect(await createRecorder(database.db, `${tenant}x`, () => now)([original])).toEqual(['recorded']);
  });

  test('two who record the same at once: one does, the other finds it there', async () => {
    const batch = Array.from({ length: 50 }, () => change());
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => record(batch)));
    for (const place of batch.keys()) {
      const of = outcomes.map((all) => all[place]).sort();
      expect(of).toEqual(['duplicate', 'duplicate', 'duplicate', 'recorded']);
    }
    expect((await find('')).total).toBe(50);
  });

  test('two who record the same in opposite order win and lose a race, and both end well', async () => {
    const batch = Array.from({ length: 120 }, () => change());
    const half = batch.slice(0, 60);
    const results = await Promise.all([
      record(batch),
      record(batch.toReversed()),
      record(half.toReversed()),
      record(batch),
    ]);
    const count = (outcome: Outcome) => results.flat().filter((one) => one === outcome).length;
    expect({ recorded: count('recorded'), duplicate: count('duplicate') }).toEqual({ recorded: 120, duplicate: 300 });
    expect((await find('')).total).toBe(120);
  });

  test('a deadlock or a serialization failure is tried again, any other failure is not', async () => {
    for (const [code, attempts] of [
      ['40P01', 3],
      ['40001', 3],
      ['23514', 1],
    ] as const) {
      let made = 0;
      const work = inTransaction(
        database.db,
        async (transaction) => {
          made += 1;
          await recordChange(transaction, tenant, change({ entityId: code }), now);
          if (made < 3)
            await transaction.executeQuery(CompiledQuery.raw(`do $$ begin raise sqlstate '${code}'; end $$`));
        },
        { retries: 5 },
      );
      if (attempts === 1) await expect(work).rejects.toSatisfy((error) => !isLostRace(error));
      else await work;
      expect(made).toBe(attempts);
    }
    expect((await find('entity:order')).total).toBe(2);
  });
});

test('what is older than the horizon is expired, among what is not', async () => {
  await setRetention(database.db, tenant, 3, now);
  const horizon = Math.floor(now / day) * day - 3 * day;
  const batch = [change({ at: horizon }), change({ at: horizon - 1 }), change({ at: 0 }), change({ at: now + day })];
  expect(await record(batch)).toEqual(['recorded', 'expired', 'expired', 'recorded']);
  expect(await record(batch)).toEqual(['duplicate', 'expired', 'expired', 'duplicate']);
  expect((await find('')).total).toBe(2);
});

test('a change that retention drops while it is recorded again is expired, and no conflict', async () => {
  const original = change();
  expect(await record([original])).toEqual(['recorded']);
  const outcomes = await inTransaction(database.db, async (transaction) => {
    // Retention comes between the statement that finds the entry there and the one that compares it.
    const raced = transaction.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        await database.pool.query('delete from change_entry where tenant = $1', [tenant]);
        return result;
      },
    });
    return await recordChanges(raced, tenant, [original, { ...original, actor: 'Another' }], now, { way: 'import' });
  });
  expect(outcomes).toEqual(['expired', 'expired']);
});

describe('transactions', () => {
  test('a change recorded in a transaction that is rolled back never was', async () => {
    const firstOfKind = change({ entity: 'new', actor: 'New', related: [{ entity: 'g', entityId: '1' }] });
    const attempt = inTransaction(database.db, async (transaction) => {
      expect(await recordChange(transaction, tenant, firstOfKind, now)).toBe('recorded');
      throw new Error('rolled back');
    });
    await expect(attempt).rejects.toThrow('rolled back');
    for (const table of ['entry', 'related', 'delta', 'kind', 'actor', 'tally']) {
      expect(await rowsOf(`change_${table}`), table).toBe(0);
    }
    expect(await record([firstOfKind])).toEqual(['recorded']);
  });

  test('several changes in one transaction, of a name that is new to all of them, use it once', async () => {
    await inTransaction(database.db, async (transaction) => {
      for (let nth = 0; nth < 5; nth++) {
        expect(await recordChange(transaction, tenant, change({ entityId: String(nth) }), now)).toBe('recorded');
      }
    });
    expect([await rowsOf('change_kind'), await rowsOf('change_actor')]).toEqual([1, 1]);
    expect((await find('')).entries.map((entry) => entry.entityId)).toEqual(['4', '3', '2', '1', '0']);
  });

  test('an empty batch records nothing', async () => {
    expect(await record([])).toEqual([]);
  });

  test('it works under repeatable read as well', async () => {
    const repeated = change();
    const outcomes = await inTransaction(
      database.db,
      (transaction) => recordChanges(transaction, tenant, [repeated, repeated], now, { way: 'import' }),
      {
        isolation: 'repeatable read',
      },
    );
    expect(outcomes).toEqual(['recorded', 'duplicate']);
  });
});

describe('sizes', () => {
  const emoji = (count: number) =>
    Array.from({ length: count }, () => String.fromCodePoint(0x1f300 + random.below(700)));

  test('names, ids and actors of 1,000 emoji, which are larger than a row of an index may be', async () => {
    const long = () => emoji(1_000).join('');
    const oversized = change({
      entity: long(),
      entityId: long(),
      name: long(),
      schemaVersion: long(),
      actor: long(),
      related: Array.from({ length: 20 }, () => ({ entity: long(), entityId: long() })),
    });
    expect(await record([oversized])).toEqual(['recorded']);
    expect(await record([oversized])).toEqual(['duplicate']);
    await foldHistory(database.db, tenant);
    const [item] = oversized.related;
    for (const q of [
      `actor:"${oversized.actor}"`,
      `entity:"${oversized.entity}" entityId:"${oversized.entityId}"`,
      `related:elemMatch(entity:"${item?.entity}" entityId:"${item?.entityId}")`,
      `related.entity:"${item?.entity}"`,
    ]) {
      const { total, entries } = await find(q);
      expect({ total, name: entries[0]?.name, actor: entries[0]?.actor }).toEqual({
        total: 1,
        name: oversized.name,
        actor: oversized.actor,
      });
    }
  });

  test('hundreds of related items, repeated too, come back as they were, and each is found', async () => {
    const related = Array.from({ length: 600 }, (_, nth) => ({ entity: `e${nth % 7}`, entityId: String(nth % 300) }));
    expect(await record([change({ related })])).toEqual(['recorded']);
    const { entries } = await find('related:elemMatch(entity:e3 entityId:3)');
    expect(JSON.parse(entries[0]?.related ?? '')).toEqual(related);
    expect(await rowsOf('change_related')).toBe(new Set(related.map((item) => JSON.stringify(item))).size);
    expect((await find('related.entity:e6 related.entityId:299')).total).toBe(1);
    expect((await find('related:elemMatch(entity:e2 entityId:3)')).total).toBe(1);
    expect((await find('related.entity:e0 related.entityId:3')).total).toBe(1);
    expect((await find('related:elemMatch(entity:e0 entityId:3)')).total).toBe(0);
  });

  test('texts with everything that is special somewhere come back unchanged', async () => {
    for (const text of [
      '\\',
      '"',
      "'",
      '{}',
      '{NULL}',
      'NULL',
      ',',
      '\u0001\u007f',
      '\ufffe',
      '\u{10ffff}',
      '$1',
      ' ',
      '',
    ]) {
      const special = change({
        entity: text,
        entityId: text,
        name: text,
        actor: text,
        related: [{ entity: text, entityId: text }],
      });
      expect(await record([special])).toEqual(['recorded']);
      expect(await record([special])).toEqual(['duplicate']);
      const quoted = `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
      const { entries } = await find(
        `entity:${quoted} entityId:${quoted} related:elemMatch(entity:${quoted} entityId:${quoted})`,
      );
      expect(
        entries.map(({ entity, entityId, name, actor, related }) => ({ entity, entityId, name, actor, related })),
      ).toEqual([{ entity: text, entityId: text, name: text, actor: text, related: JSON.stringify(special.related) }]);
    }
  });

  test('paths of 16 MiB, beside small ones', async () => {
    const value = 'ab\\"é😀'.repeat(1_700_000);
    const paths = `{"a":{"before":9007199254740993,"after":"${value}"}}`;
    expect(Buffer.byteLength(paths)).toBeGreaterThan(16 * 1024 * 1024);
    const large = change({ paths });
    expect(await record([change(), large])).toEqual(['recorded', 'recorded']);
    expect(await record([large])).toEqual(['duplicate']);
    const { entries } = await find('', 1);
    expect(entries[0]?.paths === paths).toBe(true);
  });

  test('a batch of 2,000 with 500 actors, 60 kinds and repetitions has its outcomes in order', async () => {
    const batch = Array.from({ length: 2_000 }, (_, nth) =>
      change({
        at: now - nth * 1000,
        entity: `entity ${nth % 20}`,
        type: (['create', 'update', 'delete'] as const)[nth % 3] ?? 'update',
        entityId: String(nth),
        actor: `actor ${nth % 500}`,
      }),
    );
    for (let nth = 1_999; nth > 0; nth -= 7) batch[nth] = { ...(batch[nth - 1] as Change) };
    const seen = new Set<string>();
    const expected = batch.map(({ at, identity }) => {
      const key = `${at} ${Buffer.from(identity).toString('hex')}`;
      const outcome = seen.has(key) ? 'duplicate' : 'recorded';
      seen.add(key);
      return outcome;
    });
    expect(await record(batch)).toEqual(expected);
    expect(await record(batch)).toEqual(batch.map(() => 'duplicate'));
    expect((await find('entity:*', 1)).total).toBe(seen.size);
  });

  test('texts of one entry that would be another statement are data', async () => {
    const evil = "'); drop table change_entry; --";
    expect(await record([change({ entity: evil, entityId: evil, actor: evil, name: evil })])).toEqual(['recorded']);
    expect((await find(`actor:"${evil}"`)).total).toBe(1);
  });
});
