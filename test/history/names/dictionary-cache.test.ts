import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { doWork } from '../../../src/core/fairness/work.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { extendDictionary } from '../../../src/history/search/names/dictionary.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { readNames } from '../../../src/history/search/names/name-store.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChange } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Exceeds the consecutive reads that Annals tries. */
const many = 9_000;

function change(actor: string): Change {
  const rest = { type: 'update', entity: 'order', entityId: '1', related: [], paths: '{}' } as const;
  return { identity: randomBytes(16), at: now - 1, actor, ...rest };
}

/** Each with a character that needs escaping in JSON or SQL. */
function nameOf(place: number): string {
  return `${['"', '\\', "'", '😀', '\n', '{', ','][place % 7]}${place}`;
}

const database = closeAfterAll(await createTestDatabase());
for (const tenant of ['many', 'little1', 'little2', 'little3']) {
  await createTenant(database.db, tenant);
  const record = createRecorder(database.db, tenant, () => now);
  const count = tenant === 'many' ? many : 20;
  for (let first = 0; first < count; first += 1_500) {
    const names = Array.from({ length: Math.min(1_500, count - first) }, (_none, place) => nameOf(first + place));
    await record(names.map(change));
  }
}

test('names are read completely from any number of rows, and found by their numbers', async () => {
  const dictionary = extendDictionary(undefined, await readNames(database.pool, 'many', undefined));
  expect(dictionary.actors.map(({ name }) => name).sort()).toEqual(
    Array.from({ length: many }, (_, n) => nameOf(n)).sort(),
  );
  const ids = dictionary.actors.map(({ id }) => id);
  expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  for (const actor of dictionary.actors) expect(dictionary.actorOf.get(actor.id)).toBe(actor);
  for (const id of [0, (ids[0] ?? 0) - 1, (ids.at(-1) ?? 0) + 1, 2 ** 50])
    expect(dictionary.actorOf.get(id)).toBeUndefined();
  expect(dictionary.kinds).toMatchObject([{ entity: 'order', type: 'update', relatedEntities: [] }]);
});

test('a name with a lower number that commits later is sorted into its place', async () => {
  const { pool, db } = database;
  await createTenant(db, 'late');
  const record = createRecorder(db, 'late', () => now);
  await record([change('first')]);
  let known = extendDictionary(undefined, await readNames(pool, 'late', undefined));
  await inTransaction(db, async (open) => {
    await recordChange(open, 'late', change('slow'), now);
    await record([change('quick')]);
    known = extendDictionary(known, await readNames(pool, 'late', known));
    expect(known.actors.map(({ name }) => name)).toEqual(['first', 'quick']);
  });
  const names = extendDictionary(known, await readNames(pool, 'late', known));
  expect(names.actors.map(({ name }) => name)).toEqual(['first', 'slow', 'quick']);
  for (const actor of names.actors) expect(names.actorOf.get(actor.id)).toEqual(actor);
});

describe('the cache', () => {
  test('keeps the most recently used tenants that fit', async () => {
    const cache = new DictionaryCache(database.pool, { maxBytes: 4_000 });
    for (const tenant of ['little1', 'little2']) await cache.get(tenant);
    expect(cache.known('little1')).toBeDefined();
    await cache.get('little3');
    expect(['little1', 'little2', 'little3'].map((tenant) => cache.known(tenant) !== undefined)).toEqual([
      true,
      false,
      true,
    ]);
  });

  test('keeps a tenant that does not fit only while it is in use', async () => {
    const cache = new DictionaryCache(database.pool, { maxBytes: 100_000, idle: 300 });
    await cache.get('little1');
    const [first, second] = await Promise.all([cache.get('many'), cache.get('many')]);
    expect(first).toBe(second);
    expect(cache.known('little1')).toBeUndefined();
    expect(cache.known('many')).toBe(first);
    // Reading the cache counts as use, so poll rarely.
    await expect.poll(() => cache.known('many'), { timeout: 30_000, interval: 1_000 }).toBeUndefined();
    expect((await cache.get('many')).actors).toHaveLength(many);
  });

  test('a caller that gives up does not cancel the read for other waiting callers', async () => {
    const cache = new DictionaryCache(database.pool);
    const stop = new Stop();
    const impatient = doWork({ tenant: 'little2', signal: stop }, () => cache.get('little2'));
    const patient = cache.get('little2');
    stop.abort(new Error('gave up'));
    await expect(impatient).rejects.toThrow('gave up');
    expect((await patient).actors).toHaveLength(20);
    expect(cache.known('little2')).toBe(await patient);
  });

  test('a tenant with too many names is an error, and only their number is read', async () => {
    await expect(readNames(database.pool, 'many', undefined, 200_000)).rejects.toMatchObject({
      type: 'service_unavailable',
      message: expect.stringContaining('more names of actors'),
    });
    expect((await readNames(database.pool, 'little1', undefined, 200_000)).actors).toHaveLength(20);
  });
});
