import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { clearOnErasure, forgetAll } from '../../../src/core/forgetting.ts';
import { createSealer } from '../../../src/core/sealing.ts';
import { type EraseOptions, eraseSubject, findSubject } from '../../../src/history/erasure/erase.ts';
import { listErasures } from '../../../src/history/erasure/erasure-store.ts';
import type { Subject } from '../../../src/history/erasure/subject.ts';
import { holdTenant, releaseTenant } from '../../../src/history/retention/hold.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { readPackageSchema } from '../../../src/postgres/schema/read-schema.ts';
import { watchSchema } from '../../../src/postgres/schema/watch-schema.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { createBatchRecorder } from '../../../src/recording/batches/record-batch.ts';
import { findErasedDocuments } from '../../../src/recording/erased-changes.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { readReceipts } from '../../../src/recording/receipt-store.ts';
import { createRecorder, maxRetries, recordChange, recordChanges } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { changeOf } from '../../support/server/history.ts';
import { eventually, letOthersWork } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const now = Date.now();
const secret = Buffer.alloc(32, 7);
const jane = 'Jane Canary';

let tenants = 0;

const server = closeAfterAll(await startTestServer());
const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: secret.toString('base64') };

async function newTenant() {
  tenants += 1;
  const tenant = `person${tenants}`;
  return { tenant, token: await server.token(tenant) };
}

const options = (tenant: string, subject: Subject): EraseOptions => ({
  db: server.context.db,
  sealer: createSealer([secret]),
  tenant,
  subject,
  reason: 'request',
  now: () => now,
  rest: async () => {},
});

/** Import lines: three kinds of entries for the person and one for another. */
function linesOf(count: number): string {
  const lines = Array.from({ length: count }, (_none, i) => {
    const at = new Date(now - 1_000_000 + 1_000 * i).toISOString();
    const own = { op: 'update', entity: 'customer', entityId: 'canary-4711', name: 'Canary Bird', at, actor: jane };
    return [
      { ...own, id: `a${i}`, before: { email: `old-canary${i}` }, after: { email: `canary${i}@x.org`, age: i } },
      { op: 'insert', entity: 'order', entityId: `o${i}`, at, actor: 'Bob', id: `b${i}`, after: { to: { email: 'canary@y.org' }, sum: 7 },
        related: [{ entity: 'customer', entityId: 'canary-4711' }, { entity: 'shop', entityId: '1' }], context: { ip: 'canary-ip' } }, // biome-ignore format: a line for each
      { op: 'insert', entity: 'order', entityId: `p${i}`, at, actor: jane, id: `c${i}`, after: { sum: 1.5 } },
      { op: 'insert', entity: 'product', entityId: `q${i}`, at, actor: 'Bob', after: { sum: 2 } },
    ];
  });
  return lines
    .flat()
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

async function importLines(tenant: string, lines: string) {
  const { code, stdout, stderr } = await annals(['import', '--tenant', tenant, '-'], environment, lines);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as Record<string, number>;
}

interface Item {
  at: string;
  type: string;
  entity: string;
  entityId: string;
  actor: string;
  name?: string;
  paths: Record<string, Record<string, unknown>>;
  related: { entityId: string }[];
  erased?: string[];
}

async function read(tenant: string, token: string, path: string, parameters: Record<string, string> = {}) {
  const response = await server.call(`/changelog/${tenant}/${path}?${new URLSearchParams(parameters)}`, { token });
  expect(response.status).toBe(200);
  return (await response.json()) as { items: Item[]; totalElements: number };
}

/** All texts in the tables of a tenant. */
async function dumpOf(tenant: string): Promise<string> {
  const { rows } = await server.database.pool.query(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
       where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  const texts: string[] = [];
  for (const { name } of rows as { name: string }[]) {
    const found = await server.database.pool.query(`select t::text as row from ${name} t where tenant = $1`, [tenant]);
    texts.push(...found.rows.map(({ row }: { row: string }) => `${name} ${row}`));
  }
  return texts.join('\n');
}

describe('the entries', () => {
  test('an actor becomes a random name, and totals, histograms and facets do not change', async () => {
    const { tenant, token } = await newTenant();
    await importLines(tenant, linesOf(5));
    const shape = async () => {
      const { items, totalElements } = await read(tenant, token, 'changelogs', { size: '100' });
      const seen = items.map(({ at, type, entity, paths, related }) => [
        at,
        type,
        entity,
        Object.keys(paths),
        related.length,
      ]);
      const facets = await read(tenant, token, 'facets', { field: 'actor' });
      const counts = (facets as unknown as { values: { count: number }[] }).values.map(({ count }) => count);
      const { buckets } = (await read(tenant, token, 'histogram', { interval: 'day' })) as unknown as {
        buckets: { count: number }[];
      };
      return {
        seen,
        totalElements,
        counts,
        // Over time, empty buckets follow the last change.
        buckets: buckets.filter(({ count }) => count > 0),
        named: (await read(tenant, token, 'changelogs', { q: 'actor:Bob' })).totalElements,
      };
    };
    const before = await shape();
    const counted = await findSubject(options(tenant, { actor: jane, paths: [] }), () => {});
    expect(counted).toEqual({ erasure: undefined, entries: 10, rows: {}, left: [] });
    const { erasure, entries } = await eraseSubject(options(tenant, { actor: jane, paths: [] }));
    expect({ erasure, entries }).toEqual({ erasure: expect.any(String), entries: 10 });
    // What every process does within five seconds: one that read the name just after it was registered knows it until
    // then.
    forgetAll();
    expect(await shape()).toEqual(before);
    const { items } = await read(tenant, token, 'changelogs', { size: '100' });
    const changed = items.filter(({ erased }) => erased !== undefined);
    expect(changed).toHaveLength(10);
    expect(new Set(changed.map(({ actor }) => actor)).size).toBe(1);
    expect(changed[0]).toMatchObject({ actor: expect.stringMatching(/^erased-[0-9a-f]{16}$/), erased: ['actor'] });
    expect((await read(tenant, token, 'changelogs', { q: `actor:${changed[0]?.actor}` })).totalElements).toBe(10);
    expect(await dumpOf(tenant)).not.toContain(jane);
    expect(await eraseSubject(options(tenant, { actor: jane, paths: [] }))).toEqual({
      erasure: undefined,
      entries: 0,
      rows: {},
      left: [],
    });
  });

  test('a document loses its id, names and values, in related entries and at named paths too', async () => {
    const { tenant, token } = await newTenant();
    await importLines(tenant, linesOf(3));
    const paths = [{ entity: 'order', path: 'to.email' }];
    const { entries } = await eraseSubject(options(tenant, { entity: 'customer', entityId: 'canary-4711', paths }));
    expect(entries).toBe(6);
    const { items } = await read(tenant, token, 'changelogs', { size: '100' });
    const own = items.filter(({ entity }) => entity === 'customer');
    expect(own[0]).toMatchObject({
      entityId: expect.stringMatching(/^erased-/),
      name: own[0]?.entityId,
      actor: jane,
      paths: { email: { before: '[erased]', after: '[erased]' }, age: { after: '[erased]' } },
      erased: ['entityId', 'name', 'paths.age', 'paths.email'],
    });
    const orders = items.filter(({ erased, entity }) => entity === 'order' && erased !== undefined);
    expect(orders).toHaveLength(3);
    expect(orders[0]).toMatchObject({
      paths: { 'to.email': { after: '[erased]' }, sum: { after: 7 } },
      related: [{ entityId: own[0]?.entityId }, { entityId: '1' }],
      erased: ['context', 'paths.to.email', 'related'],
    });
    const q = `related.entity:customer related.entityId:${own[0]?.entityId}`;
    expect((await read(tenant, token, 'changelogs', { q })).totalElements).toBe(3);
    expect(
      (await read(tenant, token, 'changelogs', { q: `entity:customer entityId:${own[0]?.entityId}` })).totalElements,
    ).toBe(3);
    expect((await dumpOf(tenant)).replaceAll(jane, '')).not.toMatch(/canary|bird/i);
  });

  test('erased entries are duplicates when the old file is imported again, and entries of others are recorded', async () => {
    const { tenant } = await newTenant();
    const lines = linesOf(4);
    expect(await importLines(tenant, lines)).toMatchObject({ recorded: 16 });
    await eraseSubject(options(tenant, { actor: jane, paths: [] }));
    await eraseSubject(options(tenant, { entity: 'customer', entityId: 'canary-4711', paths: [] }));
    expect(await importLines(tenant, lines)).toMatchObject({ recorded: 0, duplicate: 16, rejected: 0 });
    expect(await dumpOf(tenant)).not.toMatch(/Jane Canary|canary-4711/);
    expect(await importLines(tenant, linesOf(5))).toMatchObject({ recorded: 4, duplicate: 16 });
  });

  test('the list of erasures shows when, why and how many, never whom, to clients that manage the history', async () => {
    const { tenant, token } = await newTenant();
    await importLines(tenant, linesOf(2));
    await eraseSubject(options(tenant, { actor: jane, paths: [] }));
    await eraseSubject(options(tenant, { entity: 'customer', entityId: 'canary-4711', paths: [] }));
    const ask = (path: string, as = token) => server.call(`/changelog/${tenant}/erasures${path}`, { token: as });
    const reader = await server.token(tenant, { scope: 'changelog.changelog_read' });
    expect((await ask('', reader)).status).toBe(403);
    const response = await ask('?sort=entries:DESC&pageSize=1');
    const text = await response.text();
    const moment = new Date(now).toISOString();
    expect(JSON.parse(text)).toEqual([
      { id: expect.stringMatching(/^[0-9a-f-]{36}$/), begunAt: moment, endedAt: moment, reason: 'request', entries: 4 },
    ]);
    expect(text).not.toMatch(/canary|erased-/i);
  });

  test('an erased event that a recorder sends again is a duplicate, even during the erasure', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    const sealer = createSealer([secret]);
    const changes = Array.from({ length: 40 }, (_none, i) => changeOf({ at: now - i, actor: jane }));
    const take = createBatchRecorder({ sealer, now: () => now });
    const items = changes.map((change) => ({
      kind: 'change' as const,
      change,
      source: { position: 'p', line: () => undefined },
    }));
    const send = async () => {
      const batch = { tenant, recordedBy: { way: 'recorder', by: 'shop' }, changes: items, strict: false } as const;
      const { counts } = await inTransaction(db, (transaction) => take(transaction, batch), { retries: maxRetries });
      return [counts.recorded, counts.duplicate];
    };
    expect(await send()).toEqual([40, 0]);
    let isOver = false;
    const sending = (async () => {
      const sent: unknown[] = [];
      while (!isOver) sent.push(await send());
      return sent;
    })();
    await eraseSubject(options(tenant, { actor: jane, paths: [] }));
    isOver = true;
    expect(new Set((await sending).map(String))).toEqual(new Set(['0,40']));
    expect(await send()).toEqual([0, 40]);
    expect(await dumpOf(tenant)).not.toContain(jane);
  });

  test('the OpenID subject of a person is erased with their name, in sessions and accesses too', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    const person = { issuer: 'https://login.example', subject: 'auth0-canary|77' };
    await inTransaction(db, (transaction) =>
      recordChange(transaction, tenant, changeOf({ at: now, actor: jane, actorId: person.subject }), now, person),
    );
    await server.database.pool.query(
      `insert into access_event (tenant, id, at, kind, client, name, issuer, subject, address, program, details)
         values ($1, '1', now(), 'signed_in', 'c', 'Console', $2, $3, '203.0.113.77', 'canary/7', '{}'),
           ($1, '2', now(), 'signed_in', 'c', 'Console', $2, 'another', '203.0.113.78', 'curl/8', '{}')`,
      [tenant, person.issuer, person.subject],
    );
    await eraseSubject(options(tenant, { actor: jane, paths: [] }));
    const dump = await dumpOf(tenant);
    expect(dump).not.toMatch(/canary|203\.0\.113\.77/i);
    expect(dump).toMatch(/203\.0\.113\.78,curl\/8/);
  });

  test('an erased document is recognised by its id, given the key', async () => {
    const { tenant } = await newTenant();
    await importLines(tenant, linesOf(1));
    await eraseSubject(options(tenant, { entity: 'customer', entityId: 'canary-4711', paths: [] }));
    const documents = ['canary-4711', 'canary-4712'].map((entityId) => ({ entity: 'customer', entityId }));
    const ask = (of: string) => findErasedDocuments(server.context.db, createSealer([secret]), of, documents);
    expect(await ask(tenant)).toEqual([true, false]);
    expect(await ask('person1')).toEqual([false, false]);
  });

  test('every process on the database drops its caches after an erasure', async () => {
    const { tenant } = await newTenant();
    await importLines(tenant, linesOf(1));
    const schema = await readPackageSchema();
    const watch = await watchSchema(server.database.url, async () => schema);
    try {
      const { promise, resolve } = Promise.withResolvers<void>();
      const keeper = { clear: resolve };
      clearOnErasure(keeper);
      await eraseSubject(options(tenant, { actor: jane, paths: [] }));
      await promise;
      // In use until here, so that it is not garbage-collected.
      expect(keeper.clear).toBe(resolve);
    } finally {
      await watch.close();
    }
  });

  test('receipts name the erased positions, and entries keep their positions', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    await importLines(tenant, linesOf(2));
    await givePositions(db, tenant);
    await eraseSubject(options(tenant, { actor: jane, paths: [] }));
    const receipts = (await readReceipts(db, tenant, { limit: 10 })).map(({ body }) => JSON.parse(body));
    expect(receipts).toMatchObject([{ what: 'erasure', positions: [[1, 1], [3, 3], [5, 5], [7, 7]], by: 'operator', reason: 'request' }]); // biome-ignore format: one line
  });

  test('a tenant on hold is not erased from, even if the hold begins during an erasure', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    await importLines(tenant, linesOf(2));
    await holdTenant(db, tenant, 'lawsuit', now);
    const subject = { actor: jane, paths: [] };
    await expect(eraseSubject(options(tenant, subject))).rejects.toThrow('is on hold');
    expect(await dumpOf(tenant)).toContain(jane);
    await releaseTenant(db, tenant, now);
    const erasing = eraseSubject({
      ...options(tenant, subject),
      rest: async () => void (await holdTenant(db, tenant, 'audit', now)),
    });
    await expect(erasing).rejects.toThrow('is on hold');
    await releaseTenant(db, tenant, now);
    const { entries } = await eraseSubject(options(tenant, subject));
    expect(entries).toBe(4);
    expect(await dumpOf(tenant)).not.toContain(jane);
  });

  test('an erasure waits for a fold in another process, and erases its entries too', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    await createRecorder(db, tenant, () => now)([changeOf({ at: now, entityId: 'canary-1' })]);
    const client = await server.database.pool.connect();
    const lock = `(hashtextextended('change_fold ' || $1, 0))`;
    await client.query(`select pg_advisory_lock${lock}`, [tenant]);
    const erasing = eraseSubject(options(tenant, { entity: 'order', entityId: 'canary-1', paths: [] }));
    await Promise.race([erasing, letOthersWork(300)]);
    await client.query(`select pg_advisory_unlock${lock}`, [tenant]);
    client.release();
    expect(await erasing).toMatchObject({ entries: 1 });
    expect(await dumpOf(tenant)).not.toContain('canary-1');
  });

  test('an erasure of a person who is recorded continuously fails with a message, and resumes on the next call', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    const record = createRecorder(db, tenant, () => now);
    let recorded = 0;
    const again = async () => {
      recorded += 1;
      await record([changeOf({ at: now + recorded, actor: jane })]);
    };
    await again();
    const subject = { actor: jane, paths: [] };
    await expect(eraseSubject({ ...options(tenant, subject), rest: again })).rejects.toThrow('is still being recorded');
    const begun = await listErasures(db, tenant, { limit: 10 });
    expect(begun).toMatchObject([{ endedAt: null, entries: 5 }]);
    expect(await eraseSubject(options(tenant, subject))).toMatchObject({ erasure: begun[0]?.erasure, entries: 6 });
    expect(recorded).toBe(6);
    expect(await dumpOf(tenant)).not.toContain(jane);
  });

  test('an erasure waits for recordings in progress when it begins, and erases them', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    const { pool } = server.database;
    await createRecorder(db, tenant, () => now)([changeOf({ at: now - 1, actor: jane })]);
    const begun = (await pool.query('select clock_timestamp() as at')).rows[0].at;
    const looks = `select from pg_stat_activity where query like '%xact_start < %' and query_start > $1 and pid <> pg_backend_pid()`;
    const { erasing } = await db.transaction().execute(async (recording) => {
      await recordChanges(recording, tenant, [changeOf({ at: now, actor: jane })], now, { way: 'import' });
      const waiting = eraseSubject(options(tenant, { actor: jane, paths: [] }));
      await eventually(async () => (await pool.query(looks, [begun])).rowCount).toBeGreaterThan(0);
      return { erasing: waiting };
    });
    expect(await erasing).toMatchObject({ entries: 2 });
  });

  test('an entry recorded just before the name is deleted is erased too, even if it is the only one left', async () => {
    const { tenant } = await newTenant();
    const { db } = server.context;
    const { pool } = server.database;
    const record = createRecorder(db, tenant, () => now);
    await record([changeOf({ at: now - 1, actor: jane })]);
    await foldHistory(db, tenant);
    await pool.query('delete from change_entry where tenant = $1', [tenant]);
    const client = await pool.connect();
    const lock = `(hashtextextended('proof ' || $1, 0))`;
    await client.query(`select pg_advisory_lock${lock}`, [tenant]);
    const erasing = eraseSubject(options(tenant, { actor: jane, paths: [] }));
    const waiting = `select from pg_locks where locktype = 'advisory' and not granted`;
    await eventually(async () => (await client.query(waiting)).rowCount).toBe(1);
    await record([changeOf({ at: now, actor: jane })]);
    await client.query(`select pg_advisory_unlock${lock}`, [tenant]);
    client.release();
    expect(await erasing).toMatchObject({ entries: 1 });
  });

  test('annals erase --dry-run counts, and --yes continues while others record', async () => {
    const { tenant } = await newTenant();
    const lines = linesOf(30);
    await importLines(tenant, lines);
    const file = join(temporaryFolder(), 'paths');
    writeFileSync(file, '{"entity":"order","path":"to.*"}\n');
    const of = [
      '--tenant',
      tenant,
      '--entity',
      'customer',
      '--entity-id',
      'canary-4711',
      '--reason',
      'law',
      '--paths',
      file,
    ];
    const dry = await annals(['erase', ...of, '--dry-run'], environment);
    const found = dry.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(found.at(-1)).toMatchObject({ tenant, erasure: null, entries: 60 });
    expect(found).toHaveLength(32);
    expect(found).toContainEqual({
      ...{ entity: 'customer', entityId: 'canary-4711', entries: 30 },
      erased: ['entityId', 'name', 'paths.age', 'paths.email'],
    });
    expect(found).toContainEqual({
      ...{ entity: 'order', entityId: 'o1', entries: 1 },
      erased: ['context', 'paths.to.email', 'related'],
    });

    let isOver = false;
    const recorder = createRecorder(server.context.db, tenant, () => now, createSealer([secret]));
    const recording = (async () => {
      for (let round = 0; !isOver; round += 1) {
        await recorder([{ identity: Buffer.alloc(16, round), at: now + round, type: 'create', entity: 'order', entityId: 'x', actor: 'Bob', related: [], paths: '{}' }]); // biome-ignore format: one line
        await foldHistory(server.context.db, tenant);
        await sleep(20);
      }
    })();
    const done = await annals(['erase', ...of, '--yes'], environment);
    isOver = true;
    await recording;
    expect({ code: done.code, stderr: done.stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(done.stdout)).toMatchObject({ tenant, entries: 60 });
    expect(await dumpOf(tenant)).not.toMatch(/canary-4711|canary@/);
    expect(await importLines(tenant, lines)).toMatchObject({ recorded: 0, duplicate: 120 });
  });
});
