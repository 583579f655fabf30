import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { prepareCertificate, writeCertificate } from '../../../src/history/erasure/certificate.ts';
import { eraseSubject } from '../../../src/history/erasure/erase.ts';
import type { Subject } from '../../../src/history/erasure/subject.ts';
import { createReadBundle } from '../../../src/history/feed/bundle-lines.ts';
import { writeExpiryReceipts } from '../../../src/history/retention/retention.ts';
import { readProof } from '../../../src/history/routes/read-proof.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { findMisfiled } from '../../../src/history/upkeep/misfiled.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { checkHistory } from '../../../src/proof/verify/check-history.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { firstKept, lastPosition, readPlaces } from '../../../src/recording/positions.ts';
import { readReceipts } from '../../../src/recording/receipt-store.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { Random } from '../../support/oracle/random.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { expectDense, placesOf } from '../../support/server/positions.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// Rows that reach the end of their block of 4,096 positions are packed: every reader of positions reads them like
// unpacked ones.
const block = 4_096;
const now = Date.UTC(2026, 8, 15);
const day = 86_400_000;
const sealer = createSealer([Buffer.alloc(32, 3)]);

let tenants = 0;
const regexes = new RegexMatcherPool();

const database = await createTestDatabase();
const folder = temporaryFolder();
makeProofKey(join(folder, 'key'));
const signer = openSigner(join(folder, 'key'), 'annals.example');

afterAll(async () => {
  signer.newest.close();
  await database.drop();
});

async function newTenant(): Promise<string> {
  tenants += 1;
  const tenant = `packed${tenants}`;
  await createTenant(database.db, tenant);
  return tenant;
}

interface Entries {
  readonly ats: readonly number[];
  readonly sequences: readonly number[];
}

async function write(tenant: string, { ats, sequences }: Entries, beginAt = 1): Promise<void> {
  await database.pool.query(
    `select change_position_write($1, $2, $3::bigint[], $4::bigint[], array_fill(0::bigint, array[cardinality($3::bigint[])]),
       array_fill(7, array[cardinality($3::bigint[])]), null, null)`,
    [tenant, beginAt, ats, sequences],
  );
}

/** Assigns positions without an entry until `left` positions of the block are left. */
async function beginBlock(tenant: string, left: number): Promise<void> {
  const none = new Array<number>(block - left).fill(-1);
  await write(tenant, { ats: none, sequences: none });
}

async function packedRows(tenant: string): Promise<number> {
  const { rows } = await database.pool.query<{ packed: number }>(
    `select count(*)::integer as packed from change_position where tenant = $1 and ats = '{}' and at_lows is not null`,
    [tenant],
  );
  return rows[0]?.packed ?? 0;
}

const none = { at: -1, sequence: -1 };
const full = (entryAt: (index: number) => { at: number; sequence: number }): Entries => {
  const entries = Array.from({ length: block }, (_none, index) => entryAt(index));
  return { ats: entries.map(({ at }) => at), sequences: entries.map(({ sequence }) => sequence) };
};
/** A block whose entries have one time and consecutive sequences, except for a few. */
const but = (others: Record<number, { at: number; sequence: number }>): Entries =>
  full((index) => others[index] ?? { at: now, sequence: 100 + index });

test.each<[what: string, entries: Entries, isPacked: boolean]>([
  ['entries of one time', but({}), true],
  ['no entry at all', full(() => none), true],
  ['receipts among them', but({ 0: none, 9: none, 4095: none }), true],
  ['an entry at the beginning of time', but({ 5: { at: 0, sequence: 3 } }), true],
  ['times as far apart as a half of 32 bits', but({ 5: { at: now + 2 ** 31 - 1, sequence: 105 } }), true],
  ['times farther apart than a half of 32 bits', but({ 5: { at: now + 2 ** 31, sequence: 105 } }), true],
  ['times farther apart than 32 bits', but({ 5: { at: now + 2 ** 32, sequence: 105 } }), true],
  ['the times that are the farthest apart', but({ 5: { at: now + 2 ** 46 - 1, sequence: 105 } }), true],
  ['times that are too far apart', but({ 5: { at: now + 2 ** 46, sequence: 105 } }), false],
  ['the sequences that are the farthest apart', but({ 5: { at: now, sequence: 104 + 2 ** 31 } }), true],
  ['sequences that are too far apart', but({ 5: { at: now, sequence: 105 + 2 ** 31 } }), false],
  ['a sequence far below the others', but({ 5: { at: now, sequence: 105 - 2 ** 31 } }), false],
  ['a time before 1970', but({ 5: { at: -2, sequence: 105 } }), false],
  ['a sequence without an entry', but({ 5: { at: -1, sequence: 105 } }), false],
])('a full block reads as written, and is packed if its numbers fit: %s', async (_what, entries, isPacked) => {
  const tenant = await newTenant();
  await write(tenant, entries);
  expect(await packedRows(tenant)).toBe(isPacked ? 1 : 0);
  const places = await placesOf(database.db, tenant, 0, 1_000);
  expect(places.map(({ at }) => at)).toEqual(entries.ats);
  expect(places.map(({ sequence }) => sequence)).toEqual(entries.sequences);
  expect(places.map(({ position }) => position)).toEqual(entries.ats.map((_at, index) => index + 1));
});

test('a row short of the end of its block is not packed until the block is complete', async () => {
  const tenant = await newTenant();
  const { ats, sequences } = full((index) => ({ at: now + index, sequence: index }));
  await write(tenant, { ats: ats.slice(0, -1), sequences: sequences.slice(0, -1) });
  expect(await packedRows(tenant)).toBe(0);
  await write(tenant, { ats: ats.slice(-1), sequences: sequences.slice(-1) }, block);
  expect(await packedRows(tenant)).toBe(1);
  expect((await placesOf(database.db, tenant)).map(({ at }) => at)).toEqual(ats);
});

const random = new Random(7);
test.each<[what: string, bytes: number, at: (index: number) => number]>([
  ['times of a year in any order', 5, () => now + random.below(365 * day)],
  ['the times of a busy tenant', 3, (index) => now + Math.floor(index / 2) + random.below(5)],
])('%s and the sequences of an import take less than %d bytes a position', async (_what, bytes, at) => {
  const tenant = await newTenant();
  await write(
    tenant,
    full((index) => ({ at: at(index), sequence: 5_000_000_000 + index })),
  );
  const { rows } = await database.pool.query<{ bytes: number }>(
    `select pg_column_size(ats) + pg_column_size(sequences) + pg_column_size(at_lows) + pg_column_size(at_highs)
       + pg_column_size(sequence_offsets) as bytes from change_position where tenant = $1`,
    [tenant],
  );
  expect(rows[0]?.bytes).toBeLessThan(bytes * block);
});

test('the first kept position and what retention drops are found in packed rows', async () => {
  const tenant = await newTenant();
  await beginBlock(tenant, 20);
  const ats = Array.from({ length: 20 }, (_none, i) => now - (20 - i) * day);
  await createRecorder(database.db, tenant, () => now)(ats.map((at) => changeOf({ at })));
  await foldHistory(database.db, tenant);
  expect(await packedRows(tenant)).toBe(1);
  await expectDense(database, tenant);
  expect(await firstKept(database.db, tenant, now - 15 * day)).toBe(block - 14);
  while (await writeExpiryReceipts(database.db, tenant, now - 15 * day, now));
  const receipts = await readReceipts(database.db, tenant, { limit: 9 });
  expect(receipts.map(({ body }) => JSON.parse(body).positions)).toEqual([[[block - 19, block - 15]]]);
});

test('a sealed history with packed rows is checked, proved and erased from', async () => {
  const { db, pool } = database;
  const tenant = await newTenant();
  await beginBlock(tenant, 8);
  const seal = async () => {
    await foldHistory(db, tenant);
    do {
      await pool.query('update proof_log set signed_at = null where tenant = $1', [tenant]);
    } while (await sealPortion(db, tenant, { signer, now: () => now }));
  };
  const identities = Array.from({ length: 6 }, (_none, i) => Buffer.alloc(16, i + 1));
  const record = createRecorder(db, tenant, () => now);
  await record(
    identities.map((identity, i) => ({
      ...changeOf({ at: now + i, entity: 'order', entityId: `o${i}`, actor: i % 2 === 0 ? 'jane' : 'john' }),
      identity,
    })),
  );
  await seal();
  // After the receipt of the first sealing, and not sealed yet.
  await record([changeOf({ at: now + 6, entity: 'order', entityId: 'o6', actor: 'jane' })]);
  await foldHistory(db, tenant);
  expect(await packedRows(tenant)).toBe(1);
  const readBundle = createReadBundle({ pool, db, regexes, now: () => now, dictionaries: new DictionaryCache(pool) });
  const check = async () => {
    const log = await readLog(db, tenant);
    const key = signer.keyOf(log?.origin ?? '');
    const newest = signer.newest.newest(log?.origin ?? '')?.note;
    const { isRight, findings } = await checkHistory(tenant, { db, readBundle, findMisfiled, key, newest }, () => {});
    return { isRight, findings: findings.filter(({ isWrong }) => isWrong).map(({ text }) => text) };
  };
  const tampered = async (statement: string) => {
    const { rows } = await pool.query('select * from change_position where tenant = $1 and first = 1', [tenant]);
    const { at_lows, at_highs, sequence_offsets, oldest, recorded } = rows[0];
    await pool.query(`update change_position set ${statement} where tenant = '${tenant}' and first = 1`);
    const found = await check();
    await pool.query(
      `update change_position set at_lows = $2, at_highs = $3, sequence_offsets = $4, oldest = $5, recorded = $6
         where tenant = $1 and first = 1`,
      [tenant, at_lows, at_highs, sequence_offsets, oldest, recorded],
    );
    return found;
  };
  expect(await check()).toEqual({ isRight: true, findings: [] });
  const places =
    'The places of the positions from 1 on do not follow from each other, or do not lead up to what is sealed.';
  for (const statement of [
    'oldest = oldest - 1',
    'at_lows = at_lows[2:]',
    'at_highs = at_highs[2:]',
    'sequence_offsets = sequence_offsets[2:]',
    'recorded = recorded[2:]',
  ]) {
    const { isRight, findings } = await tampered(statement);
    expect({ statement, isRight, findings }).toEqual({
      ...{ statement, isRight: false },
      findings: expect.arrayContaining([places]),
    });
  }
  // The place of an entry deleted before sealing leads to one.
  const misplaced = await tampered(
    `at_lows[5] = at_lows[${block}], at_highs[5] = 0, sequence_offsets[5] = sequence_offsets[${block}] + ${block - 5}`,
  );
  expect(misplaced.findings).toContainEqual(expect.stringMatching(/^2 changes are in the history that were never/));
  expect(await check()).toEqual({ isRight: true, findings: [] });

  const of = { at: now + 4, identity: Buffer.alloc(16, 5).toString('hex') };
  const proof = await readProof(db, tenant, { of, shows: 'nothing', now });
  expect(proof).toBe(await readProof(db, tenant, { of: block - 3, shows: 'nothing', now }));

  const subject: Subject = { actor: 'jane', paths: [] };
  const file = join(folder, 'certificate');
  const key = await prepareCertificate(db, tenant, signer, file);
  // The last entry is sealed between the portions and the name: with the name.
  const counts = await eraseSubject({ db, sealer, tenant, subject, reason: 'law', now: () => now, rest: seal });
  await seal();
  await writeCertificate(file, key, { db, sealer, tenant, subject, counts, isVacuumed: false, now: () => now });
  const erased = (await readReceipts(db, tenant, { limit: 20 }))
    .map(({ body }) => JSON.parse(body))
    .filter(({ what }) => what === 'erasure')
    .flatMap(({ positions }) => positions);
  const each = [block - 7, block - 5, block - 3, block];
  expect(erased.slice(0, 4)).toEqual(each.map((position) => [position, position]));
  // The last one was sealed with the name, which is hidden once more.
  expect(erased.slice(4)).toEqual([[block, block]]);
  expect(await readFile(file, 'utf8')).toMatch(/"history":\s*\[\s*\{\s*"entity":\s*"order",\s*"entries":\s*4/);
  expect(await check()).toEqual({ isRight: true, findings: [] });
  expect((await lastPosition(db, tenant)).position).toBe((await placesOf(db, tenant)).length);
  expect((await readPlaces(db, tenant, block - 2, 2)).map(({ at }) => at)).toEqual([-1, now + 6]);
});
