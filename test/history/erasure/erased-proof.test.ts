import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { hashOf } from '../../../src/core/text-hash.ts';
import { eraseSubject } from '../../../src/history/erasure/erase.ts';
import type { Subject } from '../../../src/history/erasure/subject.ts';
import { vacuumTables } from '../../../src/history/erasure/vacuum-tables.ts';
import { createReadBundle } from '../../../src/history/feed/bundle-lines.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { findMisfiled } from '../../../src/history/upkeep/misfiled.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import type { BundleLine, ReadBundle } from '../../../src/proof/bundle/lines.ts';
import { commitmentOf, hashField } from '../../../src/proof/log/commitment.ts';
import { readCommitted } from '../../../src/proof/log/entry-store.ts';
import { countOfFields, type FieldLabel, fieldsOf, labelAt } from '../../../src/proof/log/fields.ts';
import { leavesOf, readLeaves, readTreeSize } from '../../../src/proof/log/leaf-store.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { parseReceipt } from '../../../src/proof/log/receipt-text.ts';
import { saltsBelow, saltsOf } from '../../../src/proof/log/salts.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { type LogSigner, makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { checkHistory } from '../../../src/proof/verify/check-history.ts';
import type { Verdict } from '../../../src/proof/verify/verdicts.ts';
import { verifyBundle } from '../../../src/proof/verify/verify-bundle.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { readPlaces } from '../../../src/recording/positions.ts';
import { createRecorder, recordChanges } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const tenant = 'acme';
const now = () => Date.UTC(2026, 8, 15);
const sealer = createSealer([Buffer.alloc(32, 3)]);
const hashBytes = 32;

const database = closeAfterAll(await createTestDatabase());
const folder = temporaryFolder();
await createTenant(database.db, tenant);

const changes: readonly Change[] = [
  { entity: 'customer', entityId: 'c1', name: 'Ann', actor: 'Jane', paths: '{"email":{"before":"a@b","after":"c@d"},"x":{"after":1.50}}', context: '{"ip":"1"}' },
  { entity: 'order', entityId: 'o1', actor: 'Bob', related: [{ entity: 'customer', entityId: 'c1' }, { entity: 'shop', entityId: 's' }], paths: '{"to.email":{"after":"c@d"},"sum":{"after":7}}' },
  { entity: 'order', entityId: 'o2', actor: 'Jane', paths: '{}' },
  { entity: 'order', entityId: 'o3', actor: 'Bob', paths: '{"sum":{"after":8}}' },
].map((one, i) => ({ ...changeOf({ at: now() + i }), ...one })); // biome-ignore format: a line for each

/** Verifies each sealed entry against its leaf, and returns its hidden fields. */
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

/** Salts derived from bytes, at each depth possible for fields of these entries. */
function saltsOfNode(node: Buffer): Buffer[] {
  return [0, 1, 2, 3, 4, 5].flatMap((levels) => {
    const salts = saltsBelow(node, 2 ** levels, levels);
    return Array.from({ length: 2 ** levels }, (_none, i) => salts.subarray(i * hashBytes, (i + 1) * hashBytes));
  });
}

/** Whether the redactions file contains these bytes. */
async function isInFile(bytes: Buffer | undefined): Promise<boolean> {
  const url = new URL(database.url);
  url.username = 'postgres';
  const superuser = new pg.Client(url.href);
  await superuser.connect();
  try {
    await superuser.query('checkpoint');
    const { rows } = await superuser.query<{ found: boolean }>(
      `select position($1::bytea in pg_read_binary_file(pg_relation_filepath('proof_redaction'))) > 0 as found`,
      [bytes],
    );
    return rows[0]?.found === true;
  } finally {
    await superuser.end();
  }
}

test('the rest of an erased entry verifies against the earlier tree, after each of several erasures', async () => {
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
  // By a client with the actor's name, on behalf of another actor.
  await db.transaction().execute(async (transaction) => {
    const change = { ...changeOf({ at: now() + 9 }), actor: 'Carl' };
    await recordChanges(transaction, tenant, [change], now(), { way: 'recorder', by: 'Jane' });
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
  const { rows: covers } = await database.pool.query<{ cover: Buffer }>(
    'select cover from proof_redaction where position = 1',
  );
  // Behind the nodes of time and type, of entity and of schemaVersion.
  const saltOfActor = covers[0]?.cover.subarray(3 * hashBytes, 4 * hashBytes);
  await erase({ actor: 'Jane', paths: [] });
  await seal();
  // Its salt could confirm a guess of the actor, and the old row version is still in the file.
  if (inject('cluster') === null) expect(await isInFile(saltOfActor)).toBe(true);
  for await (const _table of vacuumTables({ db, pool: database.pool }, tenant, []));
  if (inject('cluster') === null) expect(await isInFile(saltOfActor)).toBe(false);
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

test('an entry erased before it is sealed is sealed as erased', async () => {
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

describe('a history with erasures, as an auditor and the operator see it', () => {
  const person = 'globex';
  let signer: LogSigner;
  let readBundle: ReadBundle;
  let kept: string;
  let nodesBefore: Buffer[];
  const regexes = new RegexMatcherPool();

  beforeAll(async () => {
    const { db, pool } = database;
    await createTenant(db, person);
    makeProofKey(join(folder, 'key of the auditor'));
    signer = openSigner(join(folder, 'key of the auditor'), 'annals.example');
    readBundle = createReadBundle({ pool, db, regexes, now, dictionaries: new DictionaryCache(pool) });
    await createRecorder(db, person, now)(changes);
    await db.transaction().execute(async (transaction) => {
      const change = { ...changeOf({ at: now() + 9 }), actor: 'Carl' };
      await recordChanges(transaction, person, [change], now(), { way: 'recorder', by: 'Jane' });
    });
    await seal();
    kept = (await readLog(db, person))?.checkpoint ?? '';
    nodesBefore = await nodesOf('select seeds as bytes from proof_leaf where tenant = $1');
    await createRecorder(db, person, now)([{ ...changeOf({ at: now() + 20 }), actor: 'Jane', context: '{"ip":"2"}' }]);
    const paths = [{ entity: 'customer', path: 'email' }];
    const subjects: Subject[] = [
      { actor: 'Jane', paths },
      { entity: 'customer', entityId: 'c1', paths: [{ entity: 'order', path: 'to' }] },
    ];
    for (const subject of subjects) {
      // Sealed between the portions and the name: with the name.
      await eraseSubject({ db, sealer, tenant: person, subject, reason: 'request', now, rest: seal });
      await seal();
    }
  });

  afterAll(async () => {
    signer.newest.close();
  });

  async function seal(): Promise<void> {
    await foldHistory(database.db, person);
    do {
      await database.pool.query('update proof_log set signed_at = null where tenant = $1', [person]);
    } while (await sealPortion(database.db, person, { signer, now }));
  }

  async function judged(accepted?: readonly string[]) {
    const lines: BundleLine[] = [];
    for await (const line of readBundle(person, { withContext: true })) lines.push(line);
    const names = lines.flatMap((one) =>
      one.kind === 'receipt text' ? (parseReceipt(one.position, one.text)?.name ?? []) : [],
    );
    const keys = [(await readLog(database.db, person))?.vkey ?? ''];
    const verdicts: Verdict[] = [];
    const read = async function* () {
      yield* lines;
    };
    const trusted = { keys, oldCheckpoint: kept, accept: new Set(accepted ?? names) };
    const { isRight, findings } = await verifyBundle(read, trusted, (verdict) => void verdicts.push(verdict));
    return { isRight, verdicts, lines, names, wrong: findings.filter((one) => one.isWrong) };
  }

  async function check() {
    const { db } = database;
    const log = await readLog(db, person);
    const newest = signer.newest.newest(log?.origin ?? '')?.note;
    const verdicts: Verdict[] = [];
    const options = { db, readBundle, findMisfiled, key: signer.keyOf(log?.origin ?? ''), newest };
    const { isRight } = await checkHistory(person, options, (verdict) => void verdicts.push(verdict));
    return { isRight, changed: verdicts.filter(({ verdict }) => verdict === verdict.toUpperCase()) };
  }

  test('each position is verified, or redacted by a receipt that names it, and the old checkpoint still verifies', async () => {
    const { isRight, verdicts, lines, names, wrong } = await judged();
    const [first, ofActor, late, ofDocument] = names;
    const redacted = (position: number, receipt: string | undefined, fields: string[]) => ({
      ...{ from: position, to: position, verdict: 'redacted', receipt, fields },
    });
    const values = ['before "email"', 'after "email"', 'after "x"'];
    expect(verdicts).toEqual([
      redacted(1, ofDocument, ['entityId', 'name', 'actor', ...values]),
      redacted(2, ofDocument, ['relatedEntityId', 'after "to.email"']),
      redacted(3, ofActor, ['actor']),
      { from: 4, to: 4, verdict: 'verified' },
      redacted(5, ofActor, ['recordedBy']),
      { from: 6, to: 6, verdict: 'receipt' },
      redacted(7, late, ['actor']),
      { from: 8, to: 10, verdict: 'receipt' },
    ]);
    expect({ isRight, wrong, first }).toEqual({ isRight: true, wrong: [], first: 'first-sealing@6' });
    expect(JSON.stringify(lines)).not.toMatch(/Jane|a@b|c@d|"c1"|"Ann"/);
    for (const name of [ofActor, late, ofDocument]) {
      expect((await judged(names.filter((one) => one !== name))).isRight).toBe(false);
    }
    expect(await check()).toEqual({ isRight: true, changed: [] });
  });

  const entryAt = (milliseconds: number) => `tenant = '${person}' and at = ${now() + milliseconds}`;

  test.each<[string, string, number]>([
    ['a value that was erased', `change_entry set paths = replace(paths, '[erased]', 'c@d') where ${entryAt(1)}`, 2],
    ['its document', `change_entry set entity_id = 'c1' where ${entryAt(0)}`, 1],
    ['its context', `change_entry set context = '{"ip":"1"}' where ${entryAt(0)}`, 1],
    [
      'a related document',
      `change_entry set related = regexp_replace(related, 'erased-\\w+', 'c1') where ${entryAt(1)}`,
      2,
    ],
    ['its actor', `change_actor set name = 'Jane' where tenant = '${person}' and name like 'erased-%'`, 1],
    ['who recorded it', `change_recorder set name = 'Jane' where tenant = '${person}' and name like 'erased-%'`, 5],
    ['that it is erased', `change_entry set erased = null where ${entryAt(1)}`, 2],
    ['what of it is erased', `change_entry set erased = '["related"]' where ${entryAt(1)}`, 2],
    ['what is not erased', `change_entry set paths = replace(paths, '7', '8') where ${entryAt(1)}`, 2],
  ])('the check names an erased entry after tampering with %s', async (_what, statement, position) => {
    const tables = ['change_entry', 'change_actor', 'change_recorder'];
    for (const table of tables) await database.pool.query(`create table saved_${table} as table ${table}`);
    await database.pool.query(`update ${statement}`);
    const { isRight, changed } = await check();
    for (const table of tables) {
      await database.pool.query(`truncate ${table}`);
      await database.pool.query(`insert into ${table} overriding system value table saved_${table}`);
      await database.pool.query(`drop table saved_${table}`);
    }
    expect(isRight).toBe(false);
    expect(changed[0]).toMatchObject({ from: position, verdict: 'CHANGED' });
  });

  test('no hash in the database confirms a guess of an erased value', async () => {
    // With a salt, by the hash of the field: so none of its salts derives from anything stored.
    const there = await nodesOf(
      `select seeds || commitments as bytes from proof_leaf where tenant = $1
       union all select cover || hashes from proof_redaction where tenant = $1`,
    );
    const guesses: [FieldLabel, string][] = [
      ['entityId', 'c1'],
      ['relatedEntityId', 'c1'],
      ['name', 'Ann'],
      ['actor', 'Jane'],
      ['before', '"a@b"'],
      ['after', '"c@d"'],
    ];
    const hidden = await nodesOf('select hashes as bytes from proof_redaction where tenant = $1');
    const known = new Set(hidden.map((hash) => hash.toString('hex')));
    const confirmed = (nodes: readonly Buffer[]) =>
      guesses.filter(([label, text]) =>
        nodes.some((node) => saltsOfNode(node).some((salt) => known.has(hashField(label, text, salt).toString('hex')))),
      );
    expect(confirmed(there)).toEqual([]);
    expect(confirmed(nodesBefore)).toEqual(guesses);
    // Without a salt: the hashes of ids, actor names and sent events can be computed by anyone.
    const { rows } = await database.pool.query<{ name: string }>(
      `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
    );
    const texts: string[] = [];
    for (const { name } of rows) {
      const { rows: found } = await database.pool.query(`select t::text as row from ${name} t`);
      texts.push(...found.map(({ row }: { row: string }) => row.replaceAll('-', '')));
    }
    const dump = texts.join('\n');
    const sent = changes.slice(0, 3).map(({ identity }) => Buffer.from(identity).toString('hex'));
    for (const hash of [hashOf('c1').toString('hex'), hashOf('Jane').toString('hex'), ...sent]) {
      expect(dump).not.toContain(hash);
    }
    expect(dump).toContain(hashOf('Bob').toString('hex'));
  });

  /** The 32-byte pieces of a column. */
  async function nodesOf(statement: string): Promise<Buffer[]> {
    const { rows } = await database.pool.query<{ bytes: Buffer }>(statement, [person]);
    return rows.flatMap(({ bytes }) =>
      Array.from({ length: bytes.length / hashBytes }, (_none, i) =>
        bytes.subarray(i * hashBytes, (i + 1) * hashBytes),
      ),
    );
  }

  test('no bundle is read until an erasure has ended', async () => {
    const ended = `update change_erasure set ended_at = $2 where tenant = $1`;
    await database.pool.query(ended, [person, null]);
    await expect(check()).rejects.toThrow('an erasure of globex has not ended');
    await database.pool.query(ended, [person, new Date()]);
    expect(await check()).toMatchObject({ isRight: true });
  });
});
