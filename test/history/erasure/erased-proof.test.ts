import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { eraseSubject } from '../../../src/history/erasure/erase.ts';
import type { Subject } from '../../../src/history/erasure/subject.ts';
import { readPlaces } from '../../../src/history/positions/position-store.ts';
import { commitmentOf, hashField } from '../../../src/history/proof/encoding/commitment.ts';
import { countOfFields, fieldsOf, labelAt } from '../../../src/history/proof/encoding/fields.ts';
import { saltsOf } from '../../../src/history/proof/encoding/salts.ts';
import { makeProofKey } from '../../../src/history/proof/sealing/make-key.ts';
import { sealPortion } from '../../../src/history/proof/sealing/seal-tenants.ts';
import { openSigner } from '../../../src/history/proof/sealing/signer.ts';
import { readCommitted } from '../../../src/history/proof/tree/entry-store.ts';
import { leavesOf, readLeaves, readTreeSize } from '../../../src/history/proof/tree/leaf-store.ts';
import { foldHistory } from '../../../src/history/tallies/fold.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChanges } from '../../../src/recording/record-change.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';

const tenant = 'acme';
const now = () => Date.UTC(2026, 8, 15);
const sealer = createSealer([Buffer.alloc(32, 3)]);
const hashBytes = 32;

let database: TestDatabase;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'annals-erased-'));
  await createTenant(database.db, tenant);
});

afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

const changes: readonly Change[] = [
  { entity: 'customer', entityId: 'c1', name: 'Ann', actor: 'Jane', paths: '{"email":{"before":"a@b","after":"c@d"},"x":{"after":1.50}}', context: '{"ip":"1"}' },
  { entity: 'order', entityId: 'o1', actor: 'Bob', related: [{ entity: 'customer', entityId: 'c1' }, { entity: 'shop', entityId: 's' }], paths: '{"to.email":{"after":"c@d"},"sum":{"after":7}}' },
  { entity: 'order', entityId: 'o2', actor: 'Jane', paths: '{}' },
  { entity: 'order', entityId: 'o3', actor: 'Bob', paths: '{"sum":{"after":8}}' },
].map((one, i) => ({ ...changeOf({ at: now() + i }), ...one })); // biome-ignore format: a line for each

/** Verifies each sealed entry against its leaf, and tells which fields are hidden. */
async function verified(): Promise<(string[] | undefined)[]> {
  const { db, pool } = database;
  const size = await readTreeSize(db, tenant);
  const places = await readPlaces(db, tenant, 0, size);
  const entries = await readCommitted(db, tenant, places, Number.MAX_SAFE_INTEGER);
  const leaves = [...leavesOf(await readLeaves(db, tenant, 1, size))];
  return await Promise.all(
    leaves.map(async ({ position, commitment, seed, kind }, index) => {
      const entry = entries[index];
      if (kind !== 'entry' || !entry) return undefined;
      const fields = fieldsOf(entry);
      const count = countOfFields(fields);
      const { rows } = await pool.query('select * from proof_redaction where tenant = $1 and position = $2', [
        tenant,
        position,
      ]);
      const [redaction] = rows as { hidden: number[]; hashes: Buffer; cover: Buffer }[];
      const parts = (bytes: Buffer) =>
        Array.from({ length: bytes.length / hashBytes }, (_none, i) =>
          bytes.subarray(i * hashBytes, (i + 1) * hashBytes),
        );
      const shown = Array.from({ length: count }, (_none, field) => redaction?.hidden.includes(field) !== true);
      if (redaction === undefined && seed === undefined) throw new Error(`nothing proves ${position}`);
      expect(redaction !== undefined && seed !== undefined).toBe(false);
      const known =
        redaction === undefined ? { seed: seed ?? Buffer.alloc(0) } : { cover: parts(redaction.cover), shown };
      const hidden = new Map(
        redaction?.hidden.map((field, place) => [field, parts(redaction.hashes)[place] as Buffer]),
      );
      const salts = saltsOf(known, count);
      const hashes = salts.map((salt, field) =>
        salt === null
          ? (hidden.get(field) ?? Buffer.alloc(0))
          : hashField(labelAt(fields, field), fields.texts[field] ?? null, salt),
      );
      expect(commitmentOf(fields, hashes).equals(commitment), `position ${position}`).toBe(true);
      return [...hidden.keys()].map((field) => labelAt(fields, field));
    }),
  );
}

test('what is left of erased entries verifies against the tree of before, as often as one is erased from', async () => {
  const { db } = database;
  const file = join(folder, 'key');
  makeProofKey(file);
  const signer = openSigner(file, 'annals.example');
  const seal = async () => {
    await foldHistory(db, tenant);
    while (await sealPortion(db, tenant, { signer, now }));
  };
  const erase = async (subject: Subject) =>
    await eraseSubject({ db, sealer, tenant, subject, reason: 'law', now, rest: async () => {} });
  await createRecorder(db, tenant, now)(changes);
  // By a client with the name of the actor, in the name of somebody else.
  await db.transaction().execute(async (transaction) => {
    const one = { ...changeOf({ at: now() + 9 }), actor: 'Carl' };
    await recordChanges(transaction, tenant, [one], now(), { way: 'recorder', by: 'Jane' });
  });
  await seal();
  const { rows: before } = await database.pool.query(
    'select commitments from proof_leaf where tenant = $1 order by first',
    [tenant],
  );
  const signed = signer.newest;
  expect((await verified()).slice(0, 5)).toEqual([[], [], [], [], []]);

  await erase({ entity: 'customer', entityId: 'c1', paths: [{ entity: 'order', path: 'to' }] });
  const values = ['before', 'after', 'after'];
  expect((await verified()).slice(0, 5)).toEqual([
    ['identity', 'context', 'entityId', 'name', ...values],
    ['identity', 'relatedEntityId', 'after'],
    [],
    [],
    [],
  ]);
  await erase({ actor: 'Jane', paths: [] });
  await seal();
  expect((await verified()).slice(0, 5)).toEqual([
    ['identity', 'context', 'entityId', 'name', 'actor', ...values],
    ['identity', 'relatedEntityId', 'after'],
    ['identity', 'actor'],
    [],
    ['recordedBy'],
  ]);
  const { rows: after } = await database.pool.query(
    'select commitments from proof_leaf where tenant = $1 order by first',
    [tenant],
  );
  const joined = (rows: { commitments: Buffer }[]) => Buffer.concat(rows.map(({ commitments }) => commitments));
  expect(joined(after).subarray(0, joined(before).length)).toEqual(joined(before));
  signed.close();
});

test('an entry that is not sealed yet is sealed as it was erased', async () => {
  const { db } = database;
  await createRecorder(db, tenant, now)([{ ...changeOf({ at: now() + 50 }), actor: 'Zoe' }]);
  await eraseSubject({
    db,
    sealer,
    tenant,
    subject: { actor: 'Zoe', paths: [] },
    reason: 'law',
    now,
    rest: async () => {},
  });
  const signer = openSigner(join(folder, 'key'), 'annals.example');
  await foldHistory(db, tenant);
  while (await sealPortion(db, tenant, { signer, now }));
  expect((await verified()).filter((hidden) => hidden !== undefined)).toHaveLength(6);
  signer.newest.close();
});
