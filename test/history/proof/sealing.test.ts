import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, expect, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { tenantsWith, workInTurn } from '../../../src/postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { openCheckpoint } from '../../../src/proof/log/checkpoint.ts';
import { commitmentOfEntry } from '../../../src/proof/log/commitment.ts';
import { readCommitted } from '../../../src/proof/log/entry-store.ts';
import { fieldsOf } from '../../../src/proof/log/fields.ts';
import { forgetSeeds, hashOfLeaf, leavesOf, readLeaves, readTreeSize } from '../../../src/proof/log/leaf-store.ts';
import { lockProof, readLog, readNodes } from '../../../src/proof/log/log-store.ts';
import { hashOfRange, rootOf } from '../../../src/proof/log/merkle.ts';
import { parseVerifierKey } from '../../../src/proof/log/note.ts';
import {
  readSealingLag,
  type Sealing,
  sealPortion,
  sealTenants,
  unsealed,
} from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { givePositions, lastPosition, readPlaces } from '../../../src/recording/positions.ts';
import { readReceipts, writeReceipt } from '../../../src/recording/receipt-store.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { eventually, letOthersWork } from '../../support/server/patience.ts';
import { runSealingLaw } from '../../support/server/sealing-law.ts';
import { setBack } from '../../support/server/set-back.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const now = () => Date.UTC(2026, 8, 15);

let tenants = 0;
const opened: Sealing[] = [];

const database = await createTestDatabase();
const db = database.db;
const folder = temporaryFolder();

afterAll(async () => {
  for (const { signer } of opened) signer.newest.close();
  await database.drop();
});

/** Sealing with a new key, or with that of the file. */
function sealingWith(file?: string): Sealing & { file: string } {
  const own = file ?? join(folder, `${opened.length}.key`);
  if (file === undefined) makeProofKey(own);
  const sealing = { signer: openSigner(own, 'annals.example'), now, file: own };
  opened.push(sealing);
  return sealing;
}

async function newTenant(): Promise<string> {
  tenants += 1;
  const tenant = `sealed${tenants}`;
  await createTenant(db, tenant);
  return tenant;
}

async function record(tenant: string, count: number): Promise<void> {
  const changes = Array.from({ length: count }, (_none, i) =>
    changeOf({
      at: now() + i,
      paths: `{"n":{"before":${i},"after":"${'x'.repeat(i % 50)}"}}`,
      ...(i % 7 === 0 && { related: [{ entity: 'customer', entityId: `c${i}` }], name: 'Ärzte' }),
      ...(i % 5 === 0 && { context: '{"ip":"192.0.2.1"}' }),
    }),
  );
  await createRecorder(db, tenant, now)(changes);
  await givePositions(db, tenant);
}

/** Seals until nothing is left, as if a minute had passed before each portion. */
async function seal(tenant: string, sealing: Sealing): Promise<void> {
  do {
    await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
  } while (await sealPortion(db, tenant, sealing));
}

/** A new tenant with sealed entries, and its sealing. */
async function sealedTenant(count: number) {
  const [tenant, sealing] = [await newTenant(), sealingWith()];
  await record(tenant, count);
  await seal(tenant, sealing);
  return { tenant, sealing };
}

/** The checkpoint of the tenant's log, with its signature and the root of the tenant's leaves verified. */
async function checkpointOf(tenant: string): Promise<{ origin: string; size: number; root: Buffer; note: string }> {
  const log = await readLog(db, tenant);
  const note = log?.checkpoint ?? '';
  const checkpoint = openCheckpoint(note, parseVerifierKey(log?.vkey ?? ''));
  if (typeof checkpoint === 'string') throw new Error(checkpoint);
  const leaves = await readLeaves(db, tenant, 1, checkpoint.size);
  expect(rootOf([...leavesOf(leaves)].map(hashOfLeaf))).toEqual(checkpoint.root);
  return { ...checkpoint, note };
}

/** Checks that the leaves match the entries in the database. */
async function expectLeavesOfEntries(tenant: string): Promise<void> {
  const size = await readTreeSize(db, tenant);
  const leaves = [...leavesOf(await readLeaves(db, tenant, 1, size))];
  const places = await readPlaces(db, tenant, 0);
  const entries = await readCommitted(db, tenant, places, Number.MAX_SAFE_INTEGER);
  expect(entries).toHaveLength(size);
  for (const [index, leaf] of leaves.entries()) {
    const entry = entries[index];
    if (leaf.kind !== 'entry') expect(entry).toBeNull();
    else if (leaf.seed !== undefined && entry) {
      expect(commitmentOfEntry(fieldsOf(entry), leaf.seed)).toEqual(leaf.commitment);
    }
  }
}

test('entries are sealed in position order, in rows within a tile, and signed', async () => {
  const { tenant, sealing } = await sealedTenant(3);
  // The receipt of the first sealing is the fourth leaf.
  const [receipt] = await readReceipts(db, tenant, { limit: 1 });
  const first = await checkpointOf(tenant);
  expect(receipt).toMatchObject({ position: 4 });
  expect(JSON.parse(receipt?.body ?? '')).toEqual({
    what: 'first sealing',
    positions: [[1, 3]],
    at: '2026-09-15T00:00:00.000Z',
    by: 'annals',
    log: first.origin,
  });
  expect(first.size).toBe(4);
  // A full tile, the first leaf of the next, and more than one transaction seals.
  for (const count of [1, 10, 1, 1, 237, 2, 1, 270, 3, 1010]) {
    await record(tenant, count);
    await seal(tenant, sealing);
    const { size, root, origin } = await checkpointOf(tenant);
    expect([origin, size]).toEqual([first.origin, (await lastPosition(db, tenant)).position]);
    expect(await hashOfRange([0, size], readNodes(db, tenant, size))).toEqual(root);
    // The earlier tree is its prefix.
    expect(await hashOfRange([0, first.size], readNodes(db, tenant, first.size))).toEqual(first.root);
  }
  await expectLeavesOfEntries(tenant);
  const { rows } = await sql<{ first: number; length: number }>`
    select first, octet_length(kinds) as length from proof_leaf where tenant = ${tenant} order by first`.execute(db);
  expect(
    rows.filter(({ first: at, length }) => Math.floor((at - 1) / 256) < Math.floor((at + length - 2) / 256)),
  ).toEqual([]);
  expect(rows.length).toBeLessThan(1540 / 256 + 32);
});

test('a tenant without changes gets no log, and one with changes is selected until all is sealed and signed', async () => {
  const [empty, tenant] = [await newTenant(), await newTenant()];
  const sealing = sealingWith();
  expect(await sealPortion(db, empty, sealing)).toBe(false);
  expect(await readLog(db, empty)).toBeUndefined();
  const isFound = async () => (await tenantsWith(db, unsealed)).includes(tenant);
  await record(tenant, 2);
  await foldHistory(db, tenant);
  expect(await isFound()).toBe(true);
  await seal(tenant, sealing);
  expect(await isFound()).toBe(false);
  await record(tenant, 1);
  await foldHistory(db, tenant);
  // A minute after the last round.
  expect(await isFound()).toBe(false);
  const passes = async (seconds: number) =>
    await sql`update change_folded set seal_after = ${sql.raw(setBack('seal_after', `${seconds}`))} where tenant = ${tenant}`.execute(
      db,
    );
  await passes(60);
  expect(await isFound()).toBe(true);
  // Not due yet: sealed, and selected again for the checkpoint.
  expect(await sealPortion(db, tenant, sealing)).toBe(false);
  expect([await readTreeSize(db, tenant), (await readLog(db, tenant))?.size]).toEqual([4, 3]);
  await passes(60);
  expect(await isFound()).toBe(true);
  await seal(tenant, sealing);
  expect(await readLog(db, tenant)).toMatchObject({ size: 4, isDue: false });
  // A time in the future would keep it from ever being signed again.
  const notYet = new Date(Date.now() + 9 * 365 * 86_400_000);
  await sql`update proof_log set signed_at = ${notYet} where tenant = ${tenant}`.execute(db);
  expect((await readLog(db, tenant))?.isDue).toBe(true);
  await passes(120);
  expect(await isFound()).toBe(false);
  await passes(86_400);
  expect(await isFound()).toBe(true);
});

test('a sealed but unsigned log is selected when its checkpoint is due, within a minute of the last one', async () => {
  const { tenant, sealing } = await sealedTenant(2);
  const lookAt = async () => {
    const { rows } = await sql<{ look: number; soon: number }>`
      select extract(epoch from seal_after - l.signed_at)::float8 as look, extract(epoch from seal_after - now())::float8 as soon
        from change_folded f join proof_log l on l.tenant = ${tenant} and l.ended is null where f.tenant = ${tenant}`.execute(
      db,
    );
    return rows[0] ?? { look: 0, soon: 0 };
  };
  await foldHistory(db, tenant);
  await sql`update proof_log set signed_at = statement_timestamp() - interval '30 s' where tenant = ${tenant}`.execute(
    db,
  );
  // Many, then few: the pause after few is longer than the time left until the checkpoint.
  for (const count of [600, 1]) {
    await record(tenant, count);
    await foldHistory(db, tenant);
    while (await sealPortion(db, tenant, sealing));
    const log = await readLog(db, tenant);
    expect({ isDue: log?.isDue, isSigned: log?.size === (await readTreeSize(db, tenant)) }).toEqual({
      ...{ isDue: false, isSigned: false },
    });
    expect((await lookAt()).look).toBeLessThanOrEqual(50.1);
  }
  // If all is signed, the next round comes after the whole pause.
  await seal(tenant, sealing);
  expect((await lookAt()).soon).toBeGreaterThan(30);
});

test('a long backlog of one tenant does not delay the checkpoints of others', async () => {
  const sealing = sealingWith();
  const [long, late] = [await newTenant(), await newTenant()];
  for (const tenant of [long, late]) {
    await record(tenant, 1);
    await foldHistory(db, tenant);
  }
  const turns: string[] = [];
  const found = [[long], [long, late], []];
  let looks = 0;
  const portion = async (tenant: string) => {
    turns.push(tenant);
    return tenant === long && turns.length < 4;
  };
  const options = { rest: async () => {}, onError: () => {}, maxTime: 0, signal: { aborted: false } as never };
  let more: string[] = [];
  do {
    const findTenants = async () => [...new Set([...more, ...(found[looks++] ?? [])])];
    more = await workInTurn(unsealed, { ...options, findTenants }, portion);
  } while (more.length > 0);
  expect(turns).toEqual([long, long, late, long]);
  await sealTenants(db, sealing, {
    ...options,
    all: false,
    findTenants: async (work) => (await tenantsWith(db, work)).filter((tenant) => [long, late].includes(tenant)),
  });
  for (const tenant of [long, late]) expect((await readLog(db, tenant))?.size).toBe(2);
});

test('the sealing lag is that of the tenant farthest behind', async () => {
  const secondDatabase = await createTestDatabase();
  try {
    expect(await readSealingLag(secondDatabase.db)).toBeUndefined();
    const sealing = sealingWith();
    for (const [tenant, count] of [
      ['near', 2],
      ['far', 5],
    ] as const) {
      await createTenant(secondDatabase.db, tenant);
      const recordThere = createRecorder(secondDatabase.db, tenant, () => Date.now() - 3_600_000);
      await recordThere(Array.from({ length: count }, (_none, i) => changeOf({ at: i })));
      await givePositions(secondDatabase.db, tenant);
    }
    while (await sealPortion(secondDatabase.db, 'near', sealing));
    // The receipt of the first sealing has a checkpoint, and the other tenant has no log yet.
    const lag = await readSealingLag(secondDatabase.db);
    expect(lag?.positions).toBe(5);
    expect(lag?.seconds).toBeGreaterThanOrEqual(3_600);
    while (await sealPortion(secondDatabase.db, 'far', sealing));
    expect(await readSealingLag(secondDatabase.db)).toEqual({ positions: 0, seconds: 0 });
  } finally {
    await secondDatabase.drop();
  }
});

test('a long entry is sealed like others, in its own portion', async () => {
  const tenant = await newTenant();
  const sealing = sealingWith();
  const long = `{"text":{"after":${JSON.stringify('ä'.repeat(4_500_000))}}}`;
  const changes = [changeOf({ at: now() }), changeOf({ at: now() + 1, paths: long }), changeOf({ at: now() + 2 })];
  await createRecorder(db, tenant, now)(changes);
  await givePositions(db, tenant);
  for (const size of [1, 2]) {
    expect(await sealPortion(db, tenant, sealing)).toBe(true);
    expect(await readTreeSize(db, tenant)).toBe(size);
  }
  await seal(tenant, sealing);
  expect((await checkpointOf(tenant)).size).toBe(4);
  await expectLeavesOfEntries(tenant);
});

test('positions without an entry have a leaf that says so, and receipts have their text', async () => {
  const tenant = await newTenant();
  const sealing = sealingWith();
  await record(tenant, 5);
  await sql`delete from change_entry where tenant = ${tenant} and at = ${now() + 2}`.execute(db);
  const receipt = { what: 'retention', positions: [[3, 3]], at: '', by: 'annals' } as const;
  await inTransaction(db, (transaction) => writeReceipt(transaction, tenant, receipt));
  await seal(tenant, sealing);
  await checkpointOf(tenant);
  const leaves = [...leavesOf(await readLeaves(db, tenant, 1, 7))];
  expect(leaves.map(({ kind }) => kind)).toEqual(['entry', 'entry', 'none', 'entry', 'entry', 'receipt', 'receipt']);
  expect(leaves.map(({ seed }) => seed === undefined)).toEqual([false, false, true, false, false, true, true]);
});

test('forgotten seeds are gone, and the tree does not change', async () => {
  const { tenant } = await sealedTenant(300);
  const before = await checkpointOf(tenant);
  const forgotten = [1, 17, 256, 257, 300];
  await inTransaction(db, (transaction) => forgetSeeds(transaction, tenant, forgotten));
  const leaves = [...leavesOf(await readLeaves(db, tenant, 1, 301))];
  const without = leaves.filter(({ seed }) => seed === undefined).map(({ position }) => position);
  expect(without).toEqual([...forgotten, 301]);
  expect(await checkpointOf(tenant)).toEqual(before);
});

test('sealing does not wait: it skips a tenant locked by an erasure or another process, and retries', async () => {
  const { tenant, sealing } = await sealedTenant(1);
  await record(tenant, 1);
  await inTransaction(db, async (transaction) => {
    await lockProof(transaction, tenant);
    expect(await sealPortion(db, tenant, sealing)).toBe(false);
    expect(await readTreeSize(db, tenant)).toBe(2);
  });
  await Promise.all([1, 2, 3].map(() => seal(tenant, sealingWith(sealing.file))));
  await seal(tenant, sealing);
  expect((await checkpointOf(tenant)).size).toBe(3);
});

test('while a checkpoint is being signed and published, no other process seals or signs the tenant', async () => {
  const { tenant, sealing } = await sealedTenant(1);
  await record(tenant, 1);
  await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
  const { origin } = await checkpointOf(tenant);
  const signing = await inTransaction(db, async (transaction) => {
    // The first process stops while publishing.
    await sql`select from proof_log where tenant = ${tenant} for update`.execute(transaction);
    const first = sealPortion(db, tenant, sealing);
    await eventually(() => sealing.signer.newest.newest(origin)?.size).toBe(3);
    await record(tenant, 1);
    const second = sealPortion(db, tenant, sealingWith(sealing.file));
    const waits = letOthersWork(1_000).then(() => 'it waits');
    expect([await Promise.race([second, waits]), await readTreeSize(db, tenant)]).toEqual([false, 3]);
    return { first };
  });
  await signing.first;
  await seal(tenant, sealing);
  expect((await checkpointOf(tenant)).size).toBe(4);
});

test('a log never has two conflicting checkpoints: a database that was set back gets a new log', async () => {
  const { tenant, sealing } = await sealedTenant(20);
  const tables = ['change_entry', 'change_position', 'change_receipt', 'proof_leaf', 'proof_tile', 'proof_log'];
  for (const table of tables) {
    await sql`create table ${sql.table(`old_${table}`)} as select * from ${sql.table(table)} where tenant = ${tenant}`.execute(
      db,
    );
  }
  await record(tenant, 5);
  await seal(tenant, sealing);
  const before = await checkpointOf(tenant);
  // Like a restore: everything is as before, and then diverges.
  for (const table of tables) {
    await sql`delete from ${sql.table(table)} where tenant = ${tenant}`.execute(db);
    await sql`insert into ${sql.table(table)} overriding system value select * from ${sql.table(`old_${table}`)}`.execute(
      db,
    );
    await sql`drop table ${sql.table(`old_${table}`)}`.execute(db);
  }
  await record(tenant, 30);
  const setBacks: unknown[] = [];
  await seal(tenant, { ...sealing, onSetBack: (of, log) => void setBacks.push({ of, ...log }) });
  expect(setBacks).toEqual([{ of: tenant, origin: before.origin, signed: 26, left: 51 }]);
  const after = await checkpointOf(tenant);
  expect(after.origin).not.toBe(before.origin);
  expect(after.size).toBe(52);
  const receipts = await readReceipts(db, tenant, { limit: 10 });
  expect(receipts.map(({ position }) => position)).toEqual([21, 52]);
  expect(JSON.parse(receipts[1]?.body ?? '')).toMatchObject({
    what: 'restore',
    by: 'annals',
    log: after.origin,
    before: { origin: before.origin, checkpoint: before.note },
  });
  await expectLeavesOfEntries(tenant);
});

test('another key, or a key without its file of checkpoints, begins a new log over the same leaves', async () => {
  const { tenant } = await sealedTenant(3);
  const one = await checkpointOf(tenant);
  await seal(tenant, sealingWith());
  const two = await checkpointOf(tenant);
  const key = join(folder, 'copied.key');
  makeProofKey(key);
  const third = sealingWith(key);
  await seal(tenant, third);
  const three = await checkpointOf(tenant);
  third.signer.newest.close();
  opened.splice(opened.indexOf(third), 1);
  await rm(`${key}.logs`);
  const fourth = sealingWith(key);
  await seal(tenant, fourth);
  const four = await checkpointOf(tenant);
  expect(new Set([one, two, three, four].map(({ origin }) => origin)).size).toBe(4);
  expect([one, two, three, four].map(({ size }) => size)).toEqual([4, 5, 6, 7]);
  const receipts = await readReceipts(db, tenant, { limit: 10 });
  expect(receipts.map(({ body }) => JSON.parse(body).what)).toEqual(['first sealing', 'new key', 'new key', 'restore']);
});

test('of two copies of a database with one key, one keeps the log', async () => {
  const { tenant, sealing } = await sealedTenant(3);
  const before = await checkpointOf(tenant);
  const copy = await createTestDatabase();
  try {
    const file = sealingWith(sealing.file);
    await createTenant(copy.db, tenant);
    const tables = ['change_kind', 'change_actor', 'change_entry', 'change_position', 'change_receipt'];
    for (const table of [...tables, 'proof_leaf', 'proof_log']) {
      const { rows } = await database.pool.query(`select to_jsonb(t) as row from ${table} t where tenant = $1`, [
        tenant,
      ]);
      await copy.pool.query(
        `insert into ${table} overriding system value select (jsonb_populate_record(null::${table}, one)).* from unnest($1::jsonb[]) one`,
        [rows.map(({ row }) => JSON.stringify(row))],
      );
    }
    await sql`update proof_log set signed_at = null`.execute(copy.db);
    await createRecorder(copy.db, tenant, now)([changeOf({ at: now() + 99 })]);
    await givePositions(copy.db, tenant);
    while (await sealPortion(copy.db, tenant, file));
    const ofCopy = await readLog(copy.db, tenant);
    expect([ofCopy?.origin, ofCopy?.size]).toEqual([before.origin, 5]);
  } finally {
    await copy.drop();
  }
  await record(tenant, 4);
  await seal(tenant, sealing);
  const after = await checkpointOf(tenant);
  expect(after.origin).not.toBe(before.origin);
});

// bench/kills also kills the database.
test('processes with one key, killed at any moment, leave one log with all checkpoints of one tree', {
  timeout: 60_000 * trials(1),
}, async () => {
  const tenant = await newTenant();
  const keyFile = join(folder, 'killed.key');
  makeProofKey(keyFile);
  const { faults, checkpoints, leaves } = await runSealingLaw({
    ...{ url: database.url, db, tenant, keyFile },
    kills: trials(3),
    random: new Random(),
  });
  expect(faults).toEqual([]);
  expect(checkpoints).toBeGreaterThan(1);
  expect(leaves).toBeGreaterThan(1);
});

test('a missing or malformed key is refused with the command that creates one', () => {
  const missing = join(folder, 'missing.key');
  expect(() => openSigner(missing, 'annals.example')).toThrow(`annals proof key ${missing}`);
  expect(() => openSigner(new URL(import.meta.url).pathname, 'annals.example')).toThrow('no Ed25519 key');
  makeProofKey(missing);
  const made = readFileSync(missing, 'utf8');
  expect(() => makeProofKey(missing)).toThrow('is there already');
  expect(readFileSync(missing, 'utf8')).toBe(made);
});
