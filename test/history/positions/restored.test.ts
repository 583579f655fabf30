import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { expect, inject, onTestFinished, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { type Sealing, sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { fingerprintAt, givePositions } from '../../../src/recording/positions.ts';
import { readReceipts } from '../../../src/recording/receipt-store.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { backupOf, restored } from '../../support/server/backups.ts';
import { copyDataFolder, makeDataFolder, removeDataFolder } from '../../support/server/data-folder.ts';
import {
  createEmptyTestDatabase,
  createSingleTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../../support/server/database.ts';
import { makeForeign } from '../../support/server/foreign.ts';
import { changeOf } from '../../support/server/history.ts';
import { temporaryFolder } from '../../support/server/package-copy.ts';
import { startPackagedPostgres } from '../../support/server/packaged-postgres.ts';
import { expectDense, placesOf } from '../../support/server/positions.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15);

async function record({ db }: TestDatabase, at: number, count: number): Promise<void> {
  await createRecorder(db, tenant, () => now)(Array.from({ length: count }, (_none, i) => changeOf({ at: at + i })));
}

/** The key that seals the tenant `sealed` of the original and of its copies. */
let sealing: Sealing;

async function recordAndSeal({ db }: TestDatabase, count: number): Promise<void> {
  await createRecorder(db, 'sealed', () => now)(Array.from({ length: count }, () => changeOf({ at: now })));
  await givePositions(db, 'sealed');
  await sql`update proof_log set signed_at = null where tenant = 'sealed'`.execute(db);
  while (await sealPortion(db, 'sealed', sealing));
}

/**
 * The same key and file of checkpoints: the copy, which lacks what was signed last, gets a log of its own.
 */
async function sealsOn(copy: TestDatabase, original: TestDatabase): Promise<void> {
  await recordAndSeal(original, 1);
  const signed = await readLog(original.db, 'sealed');
  expect(signed).toMatchObject({ size: 5 });
  await recordAndSeal(copy, 2);
  const own = await readLog(copy.db, 'sealed');
  expect(own?.size).toBe(7);
  expect(own?.origin).not.toBe(signed?.origin);
  const [, receipt] = await readReceipts(copy.db, 'sealed', { limit: 2 });
  expect(JSON.parse(receipt?.body ?? '')).toMatchObject({
    what: 'restore',
    before: { origin: signed?.origin, checkpoint: signed?.checkpoint },
  });
  await recordAndSeal(original, 1);
  expect(await readLog(original.db, 'sealed')).toMatchObject({ origin: signed?.origin, size: 6 });
}

/** 30 positions; 5 entries without a position yet, and 20 folded ones. */
async function fill(database: TestDatabase): Promise<void> {
  await createTenant(database.db, tenant);
  await record(database, now, 20);
  await foldHistory(database.db, tenant);
  await record(database, now + 20, 10);
  await givePositions(database.db, tenant);
  await record(database, now + 30, 5);
  const keyFile = join(await temporaryFolder(), 'proof.key');
  makeProofKey(keyFile);
  const signer = openSigner(keyFile, 'annals.example');
  onTestFinished(() => signer.newest.close());
  sealing = { signer, now: () => now };
  await createTenant(database.db, 'sealed');
  await recordAndSeal(database, 3);
}

/** Invariants of a copy that continues by itself. */
async function goesOn(copy: TestDatabase, original: TestDatabase): Promise<void> {
  const before = (await placesOf(original.db, tenant)).slice(0, 30);
  await record(copy, now + 100, 3);
  expect(await givePositions(copy.db, tenant)).toBe(8);
  const places = await expectDense(copy, tenant);
  expect(places.slice(0, 30)).toEqual(before);
  expect(await foldHistory(copy.db, tenant)).toBe(18);
  await record(copy, now + 200, 1);
  expect(await givePositions(copy.db, tenant)).toBe(1);
  await expectDense(copy, tenant);
  // The original diverges: the same position with another fingerprint.
  await givePositions(original.db, tenant);
  for (const position of [30, 31, 35]) {
    const [there, here] = [
      await fingerprintAt(original.db, tenant, position),
      await fingerprintAt(copy.db, tenant, position),
    ];
    expect({ position, same: there === here }).toEqual({ position, same: position === 30 });
  }
  expect(await fingerprintAt(original.db, tenant, 36)).toBeUndefined();
  await sealsOn(copy, original);
}

test('a dump on a server with lower transaction ids continues after its positions, once its ids are reset', async () => {
  const server = await startPackagedPostgres({ epoch: 7 });
  const pool = createPool(server.url);
  onTestFinished(() => pool.end());
  const source: TestDatabase = { url: server.url, pool, db: createDatabase(pool), drop: async () => {} };
  await migrate(source.pool);
  await fill(source);
  const dump = join(await temporaryFolder(), 'annals.dump');
  await server.run('pg_dump', ['--format=custom', `--file=${dump}`, server.url]);
  const target = await createTestDatabaseForThisTest(createEmptyTestDatabase);
  await server.run('pg_restore', ['--no-owner', `--dbname=${target.url}`, dump]);
  await migrate(target.pool);
  await goesOn(target, source);
});

test('without a reset a copy on another server finds nothing new', async () => {
  const database = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await fill(database);
  await givePositions(database.db, tenant);
  await makeForeign(database);
  await record(database, now + 100, 3);
  expect(await givePositions(database.db, tenant)).toBe(0);
  await migrate(database.pool);
  expect(await givePositions(database.db, tenant)).toBe(3);
  await expectDense(database, tenant);
});

test('annals restore keeps positions and fingerprints, and continues after them', async () => {
  const source = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await fill(source);
  const target = await createTestDatabaseForThisTest(createEmptyTestDatabase);
  await restored(target, await backupOf(source));
  const { rows } = await target.pool.query(
    `select from change_position where snapshot is not null
       union all select from change_delta where transaction is not null`,
  );
  expect(rows).toEqual([]);
  await goesOn(target, source);
});

test('a file copy that diverges from the original assigns the same positions with other fingerprints', async () => {
  const dataDir = await copyDataFolder(inject('initialisedFolder'));
  const copyDir = await makeDataFolder();
  onTestFinished(async () => {
    await removeDataFolder(dataDir);
    await removeDataFolder(copyDir);
  });
  const open = async (folder: string): Promise<TestDatabase> => {
    const embedded = await openEmbeddedDatabase({ dataDir: folder, log: () => {}, durability: 'none' });
    const pool = createPool(embedded.url);
    const drop = async () => {
      await pool.end();
      await embedded.release();
    };
    return { url: embedded.url, pool, db: createDatabase(pool), drop };
  };
  const first = await open(dataDir);
  await migrate(first.pool);
  await fill(first);
  await first.drop();
  await promisify(execFile)('cp', ['-a', dataDir, copyDir]);
  const [original, copy] = [await open(dataDir), await open(copyDir)];
  onTestFinished(async () => {
    await original.drop();
    await copy.drop();
  });
  await goesOn(copy, original);
});
